/** A form that was refused is shown again on the problem's page, with all that was typed. */
import { Effect } from "effect"
import { type HtmlForm, redisplayedForm, renderForm } from "../formats/html/index.ts"
import { type FormFields, negotiate, parseForm, parseFormBody,
  standardTypes } from "../formats/index.ts"
import type { HttpRequest } from "../wire/index.ts"
import { type Call, readBody, type ResourceHandler } from "./call.ts"
import { type HandlerFailure, HttpError, toProblem } from "./failures.ts"

/** The form that a request came from; it may follow from the fields, or be none of a page. */
export type FormOf = (call: Call, fields: FormFields) => HtmlForm | undefined

const formType = "application/x-www-form-urlencoded"

/** Whether a browser sent this from a page and wants one back. */
const isPageWanted = ({ headers, method }: HttpRequest): boolean => {
  const accept = headers.get("accept")
  // Most failures are of programs, that need no look at what they would accept.
  if (accept === undefined || !accept.includes("text/html")) return false
  const isForm = method === "GET" || headers.get("content-type")?.startsWith(formType) === true
  return isForm && negotiate(accept, standardTypes) === "text/html"
}

/** What a browser's form held that wants a page back; undefined for every other body. */
export const submittedFields = (
  request: HttpRequest,
  bytes: Uint8Array
): FormFields | undefined => {
  if (!isPageWanted(request)) return undefined
  const body = parseFormBody(bytes)
  return body.ok ? body.value : undefined
}

const fieldsOf = (call: Call): Effect.Effect<FormFields | undefined> => {
  if (call.request.method === "GET") {
    const query = parseForm(call.request.query)
    return Effect.succeed(query.ok ? query.value : undefined)
  }
  return readBody(call).pipe(
    Effect.map((bytes) => submittedFields(call.request, bytes)),
    Effect.catch(() => Effect.succeed(undefined))
  )
}

/** The failure with the form on its page, unless nothing takes it any more (404, 405, 410). */
export const attachForm = (
  failure: HandlerFailure,
  fields: FormFields,
  definition: HtmlForm
): HandlerFailure => {
  const { headers, problem } = toProblem(failure)
  const { detail, slug, title } = problem
  if (slug === "not-found" || slug === "method-not-allowed" || slug === "gone") return failure
  const again = redisplayedForm(definition, (name) => fields.get(name), detail ?? title)
  const tells = again.controls.some(({ fault }) => fault !== undefined)
  return new HttpError({
    headers,
    problem: { ...problem, form: { markup: renderForm(again), tells } }
  })
}

/** A handler of a form: when it fails, the page of the problem has the form as it was sent. */
export const withFormRedisplay = (
  formOf: FormOf,
  handle: ResourceHandler["handle"]
): ResourceHandler["handle"] => {
  const again = Effect.fnUntraced(function*(
    call: Call,
    failure: HandlerFailure
  ): Effect.fn.Return<never, HandlerFailure> {
    const fields = yield* fieldsOf(call)
    const definition = fields === undefined ? undefined : formOf(call, fields)
    return yield* Effect.fail(
      fields === undefined || definition === undefined
        ? failure
        : attachForm(failure, fields, definition)
    )
  })
  return (call) =>
    isPageWanted(call.request)
      ? Effect.catch(handle(call), (failure) => again(call, failure))
      : handle(call)
}
