/** Reading an `answer` document or the form of a question's page. */
import { Effect } from "effect"
import type { FormFields } from "../../formats/index.ts"
import { childrenOf, type Element, isText, textOf } from "../../formats/xml/index.ts"
import { type Call, type HttpError, httpError, readInput } from "../../pipeline/index.ts"

/** An answer as it came: text or a reference, and the `continue` attribute where there was one. */
export interface SessionInput {
  readonly text: string
  readonly href?: string
  readonly continue?: string
  readonly isForm: boolean
}

/** JSON has no text beside properties, so that it may be named. */
const textNames = new Set(["answer", "text"])

const parts = (href: string | undefined, goesOn: string | undefined) => ({
  ...href === undefined ? {} : { href },
  ...goesOn === undefined ? {} : { continue: goesOn }
})

const checked = (given: SessionInput): Effect.Effect<SessionInput, HttpError> =>
  given.href !== undefined && given.text.trim() !== ""
    ? Effect.fail(httpError("unprocessable", "an answer is either text or an href, not both"))
    : Effect.succeed(given)

const ofDocument = (root: Element): Effect.Effect<SessionInput, HttpError> => {
  const unknown = childrenOf(root).find(({ name }) => !textNames.has(name))
  if (unknown !== undefined) {
    return Effect.fail(httpError("unprocessable", `an answer has no element ${unknown.name}`))
  }
  const { continue: goesOn, href } = root.attributes
  return checked({ text: textOf(root), ...parts(href, goesOn), isForm: false })
}

const ofForm = (fields: FormFields): Effect.Effect<SessionInput, HttpError> => {
  const text = fields.get("answer") ?? ""
  const href = fields.get("href")
  if (!isText(text)) {
    return Effect.fail(httpError("malformed", "the answer holds a control character"))
  }
  const given = href === "" ? undefined : href
  return checked({ text, ...parts(given, fields.get("continue")), isForm: true })
}

/** What the body answers. `from`: which kinds of body are read here; another is 415. */
export const readAnswerInput = Effect.fnUntraced(function*(
  call: Call,
  from: "documents" | "forms" | "both"
): Effect.fn.Return<SessionInput, HttpError> {
  if (from === "forms") {
    const type = call.request.headers.get("content-type") ?? ""
    const formType = "application/x-www-form-urlencoded"
    if (type.split(";", 1)[0]?.trim().toLowerCase() !== formType) {
      const detail = `only this page's form is POSTed here, as ${formType}; PUT a document`
      return yield* httpError("unsupported-media-type", detail, [["Accept-Post", formType]])
    }
  }
  const input = yield* readInput(call, "answer", {
    form: from !== "documents",
    mayBeEmpty: from === "both"
  })
  return yield* input._tag === "Form" ? ofForm(input.fields) : ofDocument(input.root)
})
