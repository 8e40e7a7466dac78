/** The OpenAPI schemas of attempts. */
import { attribute, attributes, dateTime, digits, elementText, flag, list, object, oneOf,
  type Properties, ref, type Schema, text } from "../../formats/openapi/index.ts"

/** A header that was sent or received. */
export const recordedHeaderSchema: Schema = object({
  ...attributes({ name: text }),
  ...elementText("The value.")
}, ["name"])

/** One attempt, with the properties of its kind and the words for what follows it. */
export const attemptSchema = (
  own: Properties,
  followUps: ReadonlyArray<string>,
  required: ReadonlyArray<string>
): Schema =>
  object({
    ...own,
    ...attributes({ at: dateTime, next: dateTime, code: digits }),
    duration: attribute({ ...digits, description: "In milliseconds." }),
    redirects: attribute({ ...digits, description: "How many were followed, if any were." }),
    follows: attribute({
      ...oneOf(...followUps),
      description: "What follows the attempt, or why nothing does."
    }),
    problem: text,
    request: object({ header: list(ref("RecordedHeader")) }, ["header"]),
    answer: object({
      bytes: attribute({ ...digits, description: "Of the body, as far as it was read." }),
      cut: attribute(flag),
      header: list(ref("RecordedHeader")),
      body: { ...text, description: "The first 4 KiB, if they are text." }
    }, ["bytes"])
  }, [...required, "at", "follows"])
