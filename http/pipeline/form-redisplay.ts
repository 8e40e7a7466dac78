/** Form redisplay: the problem page of a rejected form contains the form with its typed values. */
import { Effect } from "effect"
import { type HtmlForm, outdatedForm, redisplayedForm, renderForm, signInPath,
  versionControl } from "../formats/html/index.ts"
import { type FormFields, parseForm, parseFormBody } from "../formats/index.ts"
import type { HttpRequest } from "../wire/index.ts"
import { type Call, isPageForm, isRead, type ResourceHandler } from "./call.ts"
import { type HandlerFailure, HttpError, httpError, toHttpError } from "./http-error.ts"
import { readBody, type RequestInput } from "./request-input.ts"

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

/**
 * The failure with the form on its page, unless it has one, or no resource takes the form (404,
 * 405, 410).
 */
export const attachForm = (
  failure: HandlerFailure,
  fields: FormFields,
  definition: HtmlForm
): HandlerFailure => {
  const { headers, problem } = toHttpError(failure)
  const { detail, slug, title } = problem
  if (slug === "not-found" || slug === "method-not-allowed" || slug === "gone") return failure
  if (problem.form !== undefined) return failure
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

/* A form shows what it changes, and has its version: somebody else may change it meanwhile. */

/** The version that the page of a form has shown; undefined without one, as for a document. */
const versionIn = (input: RequestInput): string | undefined =>
  input._tag === "Form" ? input.fields.get(versionControl().name) || undefined : undefined

/** The version that the page of a form has shown, for the message of its change. */
export const shownVersion = (input: RequestInput): { readonly ifVersion?: number } => {
  const text = versionIn(input)
  return text !== undefined && /^\d{1,15}$/.test(text) ? { ifVersion: Number(text) } : {}
}

/** Fails with 412 if the page of the form has shown another version than the current one. */
export const checkShownVersion = (
  input: RequestInput,
  current: number | string
): Effect.Effect<void, HttpError> => {
  const shown = versionIn(input)
  return shown === undefined || shown === String(current)
    ? Effect.void
    : Effect.fail(httpError(
      "precondition-failed",
      "version is not the current one: read the page again, and send the form with its version"
    ))
}

const outdatedText = "Nothing was saved: somebody has changed this since the page showed it. The " +
  "form has what you typed, and beside it what is saved now. Compare them, and send it again."

/**
 * A change by a form of a page. If it fails with 412, the problem's page has the form of what is
 * saved `now`, which the next attempt changes, with what was typed.
 */
export const redisplayOutdated = <A>(
  call: Call,
  input: RequestInput,
  now: Effect.Effect<HtmlForm, HandlerFailure>,
  change: Effect.Effect<A, HandlerFailure>
): Effect.Effect<A, HandlerFailure> => {
  if (input._tag !== "Form" || !isPageForm(call.request)) return change
  const { fields } = input
  return Effect.catch(change, (failure) => {
    const { headers, problem } = toHttpError(failure)
    if (problem.slug !== "precondition-failed") return Effect.fail(failure)
    return Effect.flatMap(now, (current) => {
      const markup = renderForm(outdatedForm(current, (name) => fields.all(name)))
      const form = { markup, isFaultShown: false, isOutdated: true }
      return Effect.fail(
        new HttpError({ headers, problem: { ...problem, detail: outdatedText, form } })
      )
    })
  })
}
