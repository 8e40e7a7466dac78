/** Form redisplay: the problem page of a rejected form contains the form with its typed values. */
import { Effect } from "effect"
import { type HtmlForm, redisplayedForm, renderForm } from "../formats/html/index.ts"
import { type FormFields, parseForm, parseFormBody } from "../formats/index.ts"
import type { HttpRequest } from "../wire/index.ts"
import { type Call, isPageForm, type ResourceHandler } from "./call.ts"
import { type HandlerFailure, HttpError, toHttpError } from "./http-error.ts"
import { readBody } from "./request-input.ts"

/** The form that a browser submitted, which may depend on its fields; undefined if none fits. */
export type FormOf = (call: Call, fields: FormFields) => HtmlForm | undefined

/** The fields of a form that a browser submitted from a page; undefined for any other body. */
export const submittedFields = (
  request: HttpRequest,
  bytes: Uint8Array
): FormFields | undefined => {
  if (!isPageForm(request)) return undefined
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

/** The failure with the form on its page, unless no resource takes the form (404, 405, 410). */
export const attachForm = (
  failure: HandlerFailure,
  fields: FormFields,
  definition: HtmlForm
): HandlerFailure => {
  const { headers, problem } = toHttpError(failure)
  const { detail, slug, title } = problem
  if (slug === "not-found" || slug === "method-not-allowed" || slug === "gone") return failure
  const form = redisplayedForm(definition, (name) => fields.get(name), detail ?? title)
  const isFaultShown = form.controls.some(({ fault }) => fault !== undefined)
  return new HttpError({
    headers,
    problem: { ...problem, form: { markup: renderForm(form), isFaultShown } }
  })
}

/** The handler of a form: if it fails, the problem page contains the form with its values. */
export const withFormRedisplay = (
  formOf: FormOf,
  handle: ResourceHandler["handle"]
): ResourceHandler["handle"] => {
  const failWithForm = Effect.fnUntraced(function*(
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
    isPageForm(call.request)
      ? Effect.catch(handle(call), (failure) => failWithForm(call, failure))
      : handle(call)
}
