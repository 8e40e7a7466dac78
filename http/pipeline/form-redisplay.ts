/** Form redisplay: the problem page of a rejected form contains the form with its typed values. */
import { Effect } from "effect"
import { type HtmlForm, redisplayedForm, renderForm, signInPath } from "../formats/html/index.ts"
import { type FormFields, parseForm, parseFormBody } from "../formats/index.ts"
import type { HttpRequest } from "../wire/index.ts"
import { type Call, isPageForm, isRead, type ResourceHandler } from "./call.ts"
import { type HandlerFailure, HttpError, toHttpError } from "./http-error.ts"
import { readBody } from "./request-input.ts"

/** The form that a browser submitted, which may depend on its fields; undefined if none fits. */
export type FormOf = (call: Call, fields: FormFields) => HtmlForm | undefined

/** The fields of a form that a browser submitted from a page; undefined for other requests. */
export const submittedFields = (
  request: HttpRequest,
  body: Uint8Array
): FormFields | undefined => {
  if (!isPageForm(request)) return undefined
  const fields = isRead(request.method) ? parseForm(request.query) : parseFormBody(body)
  return fields.ok ? fields.value : undefined
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
  const form = redisplayedForm(definition, (name) => fields.all(name), detail ?? title)
  const isFaultShown = form.controls.some(({ fault }) => fault !== undefined)
  return new HttpError({
    headers,
    problem: {
      ...problem,
      form: {
        markup: renderForm(form),
        isFaultShown,
        isSignIn: definition.action === signInPath
      }
    }
  })
}

/** The handler of a form: if it fails, the problem page contains the form with its values. */
export const withFormRedisplay = (
  formOf: FormOf,
  handle: ResourceHandler["handle"]
): ResourceHandler["handle"] => {
  const failWithForm = (call: Call, failure: HandlerFailure) =>
    readBody(call).pipe(
      Effect.match({
        onFailure: () => failure,
        onSuccess: (body) => {
          const fields = submittedFields(call.request, body)
          const form = fields === undefined ? undefined : formOf(call, fields)
          return fields === undefined || form === undefined
            ? failure
            : attachForm(failure, fields, form)
        }
      }),
      Effect.flatMap(Effect.fail)
    )
  return (call) =>
    isPageForm(call.request)
      ? Effect.catch(handle(call), (failure) => failWithForm(call, failure))
      : handle(call)
}
