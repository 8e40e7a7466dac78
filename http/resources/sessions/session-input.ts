/** Reading an `answer` document or the form of a question's page. */
import { Effect } from "effect"
import type { FormFields } from "../../formats/index.ts"
import { type Element, isText, textOf } from "../../formats/xml/index.ts"
import { type Call, type HttpError, httpError, readInput, unprocessable,
  unsupportedMediaType } from "../../pipeline/index.ts"

/** The answer in a body: text or a reference, and the `continue` attribute. */
interface AnswerFields {
  readonly text: string
  readonly href: string | undefined
  readonly continue: string | undefined
}

export interface SessionInput extends AnswerFields {
  readonly isForm: boolean
}

const formType = "application/x-www-form-urlencoded"

const fieldsOfDocument = (root: Element): AnswerFields => {
  const { continue: continued, href } = root.attributes
  return { text: textOf(root), href, continue: continued }
}

const fieldsOfForm = (form: FormFields): Effect.Effect<AnswerFields, HttpError> => {
  const text = form.get("answer") ?? ""
  return isText(text)
    ? Effect.succeed({ text, href: form.get("href") || undefined, continue: form.get("continue") })
    : Effect.fail(httpError("malformed", "the answer holds a control character"))
}

/** The answer in the body. Any body but those of `from` is 415. */
export const readAnswerInput = Effect.fnUntraced(function*(
  call: Call,
  from: "documents" | "forms" | "both"
): Effect.fn.Return<SessionInput, HttpError> {
  if (from === "forms") {
    const type = call.request.headers.get("content-type") ?? ""
    if (type.split(";", 1)[0]?.trim().toLowerCase() !== formType) {
      const detail = `POST takes the form of this page, ${formType}; PUT takes a document`
      return yield* unsupportedMediaType(call.request.method, formType, detail)
    }
  }
  const input = yield* readInput(call, "answer", {
    form: from !== "documents",
    mayBeEmpty: from === "both"
  })
  const isForm = input._tag === "Form"
  const fields = isForm ? yield* fieldsOfForm(input.fields) : fieldsOfDocument(input.root)
  return fields.href !== undefined && fields.text.trim() !== ""
    ? yield* unprocessable("an answer is either text or an href, not both")
    : { ...fields, isForm }
})
