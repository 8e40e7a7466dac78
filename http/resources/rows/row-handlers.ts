/** The operations of rows (C3, C4): read, put, delete, create, and the forms of their pages. */
import { Effect } from "effect"
import type { Role } from "../../../actors/account/index.ts"
import { requireAccount } from "../../auth/index.ts"
import type { HtmlForm } from "../../formats/html/index.ts"
import type { ProblemSlug } from "../../formats/index.ts"
import { changeByForm, documentRequestBody, formSchema, pageVersion, type Properties,
  seeOtherResponse, text, viewResponse } from "../../formats/openapi/index.ts"
import { type Call, checkShownVersion, createdAnswer, defineHandler, emptyAnswer,
  type HandlerAnswer, type HandlerFailure, httpError, readInput, redisplayOutdated,
  type RequestInput, seeOther, type Service, viewAnswer } from "../../pipeline/index.ts"
import { replacingValue, type TableSchema } from "../../query-engine/index.ts"
import { isChangeMade } from "../../request-record.ts"
import type { ResourceDefinition, ResourceOperation } from "../../resource.ts"
import { readRecord, type RecordResource, recordVersion, removeRecord, type ReplacedRecord,
  replaceRecord } from "./record-resource.ts"

/** One kind of rows. */
export interface RowResource extends RecordResource {
  readonly schema: TableSchema
  /** The role that changes need, unless the account is an admin. */
  readonly role: Role
  /** The root element of a row's document, and the name of its key in paths. */
  readonly root: "customer" | "quote"
  readonly parameter: "customer" | "symbol"
  readonly isKey: (text: string) => boolean
  readonly collectionPath: `/${string}`
  readonly path: (key: string) => string
  /** The form that creates a row at the collection, or changes the row of this value. */
  readonly fieldsForm: (action: string, value?: string) => HtmlForm
  /** The record of a document or form at this time; fails with 422 and the broken rule. */
  readonly readInput: (
    key: string,
    input: RequestInput,
    atMs: number
  ) => Effect.Effect<string, HandlerFailure>
  /** The key of a row that is posted to the collection; fails with 422. */
  readonly newKey: (call: Call, input: RequestInput) => Effect.Effect<string, HandlerFailure>
}

/** Fails with 401, or with 403 for an account without this role. */
export const requireRole = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  role: Role
): Effect.fn.Return<void, HandlerFailure> {
  const { roles } = yield* requireAccount(service, call)
  if (roles.includes(role) || roles.includes("admin")) return
  return yield* httpError("forbidden", `this needs the role ${role}`)
})

/** The row as an answer; fails with 404 or 410. */
export const rowAnswer = Effect.fnUntraced(function*(
  service: Service,
  resource: RowResource,
  key: string
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  if (!resource.isKey(key)) return yield* httpError("not-found")
  const value = yield* readRecord(service, resource, key)
  return viewAnswer(resource.view(service, key, value))
})

/** The key in the path; fails with 404 for a text that cannot be one. */
const keyOf = (
  { isKey, parameter }: RowResource,
  { parameters }: Call
): Effect.Effect<string, HandlerFailure> => {
  const key = parameters.get(parameter)
  return parameters.secret(parameter) === undefined && isKey(key)
    ? Effect.succeed(key)
    : Effect.fail(httpError("not-found"))
}

const replaceRow = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  resource: RowResource,
  key: string,
  input: RequestInput
): Effect.fn.Return<ReplacedRecord, HandlerFailure> {
  const make = Effect.fnUntraced(function*(before: string | undefined, atMs: number) {
    const value = yield* resource.readInput(key, input, atMs)
    if (before !== undefined) yield* checkShownVersion(input, recordVersion(before))
    return replacingValue(resource.schema, value, before)
  })
  return yield* replaceRecord(service, call, resource, key, make)
})

const writtenAnswer = (
  service: Service,
  resource: RowResource,
  key: string,
  { isNew, value }: ReplacedRecord
): HandlerAnswer => {
  const view = resource.view(service, key, value)
  return isNew ? createdAnswer(service, resource.path(key), view) : viewAnswer(view)
}

const rowHandlers = (resource: RowResource) => {
  const { collectionPath, path, role, root } = resource
  const read = defineHandler(function*(service, call) {
    return yield* rowAnswer(service, resource, yield* keyOf(resource, call))
  })
  const put = defineHandler(function*(service, call) {
    yield* requireRole(service, call, role)
    const key = yield* keyOf(resource, call)
    const input = yield* readInput(call, root)
    const replaced = yield* replaceRow(service, call, resource, key, input)
    return writtenAnswer(service, resource, key, replaced)
  })
  const remove = defineHandler(function*(service, call) {
    yield* requireRole(service, call, role)
    yield* removeRecord(service, call, resource, yield* keyOf(resource, call))
    return emptyAnswer(204)
  })
  const create = defineHandler(function*(service, call) {
    yield* requireRole(service, call, role)
    const input = yield* readInput(call, root, { form: true })
    const key = yield* resource.newKey(call, input)
    const { value } = yield* replaceRow(service, call, resource, key, input)
    return input._tag === "Form"
      ? seeOther(service, path(key))
      : writtenAnswer(service, resource, key, { value, isNew: true })
  })
  /** PUT and DELETE from the forms of a row's page: HTML has neither. */
  const post = defineHandler(function*(service, call) {
    yield* requireRole(service, call, role)
    const key = yield* keyOf(resource, call)
    const input = yield* readInput(call, root, { form: true })
    if (input._tag === "Form" && input.fields.get("method") === "delete") {
      yield* removeRecord(service, call, resource, key)
      return seeOther(service, collectionPath)
    }
    // A repetition changes nothing, also if somebody has removed the row since.
    if (!(yield* isChangeMade(service, call))) {
      const current = readRecord(service, resource, key)
      yield* current
      const now = Effect.map(current, (value) => resource.fieldsForm(path(key), value))
      yield* redisplayOutdated(call, input, now, replaceRow(service, call, resource, key, input))
    }
    return seeOther(service, path(key))
  })
  return { read, put, remove, create, post }
}

/** The differences between the descriptions of two kinds of rows. */
interface RowTexts {
  /** The schemas of the fields that clients send. */
  readonly fields: Properties
  readonly createProblems?: ReadonlyArray<ProblemSlug>
  readonly create: string
  readonly put: string
  readonly remove: string
}

/** The schemas of the fields of a form, and the names of those that it requires. */
const formFields = ({ controls }: HtmlForm, { fields }: RowTexts) => ({
  properties: Object.fromEntries(controls.map(({ name }) => [name, fields[name] ?? text])),
  required: controls.filter(({ required }) => required === true).map(({ name }) => name)
})

/** Changes are for accounts with the role of the rows. */
const byRole: Required<Pick<ResourceOperation, "needs" | "scopes">> = {
  needs: "role",
  scopes: ["admin"]
}

/** The operations of a kind of rows: creating one at the collection, and those of a row. */
export const rowOperations = (
  resource: RowResource,
  texts: RowTexts
): ResourceDefinition["operations"] => {
  const { collectionPath, fieldsForm, parameter, role, root } = resource
  const { create, post, put, read, remove } = rowHandlers(resource)
  const name = `${root.charAt(0).toUpperCase()}${root.slice(1)}`
  const shown = viewResponse(name, `The ${root}`)
  const rowPath = `${collectionPath}/{${parameter}}` as const
  const created = formFields(fieldsForm(collectionPath), texts)
  const changed = formFields(fieldsForm(rowPath), texts)
  const changeSchema = formSchema({
    method: text,
    ...changed.properties,
    version: pageVersion
  })
  return {
    [`POST ${collectionPath}`]: {
      handle: create,
      form: () => fieldsForm(collectionPath),
      id: `create${name}`,
      summary: `${texts.create}; for the role ${role}`,
      ...byRole,
      body: documentRequestBody(`New${name}`, {
        form: formSchema(created.properties, created.required)
      }),
      ...texts.createProblems === undefined ? {} : { problems: texts.createProblems },
      responses: { 201: shown, 303: seeOtherResponse }
    },
    [`GET ${rowPath}`]: {
      handle: read,
      id: `get${name}`,
      summary: `A ${root}`,
      responses: { 200: shown }
    },
    [`PUT ${rowPath}`]: {
      handle: put,
      id: `put${name}`,
      summary: texts.put,
      isNeverGone: true,
      ...byRole,
      body: documentRequestBody(`New${name}`),
      responses: {
        200: viewResponse(name, "Replaced the earlier one"),
        201: viewResponse(name, `A new ${root}`)
      }
    },
    [`POST ${rowPath}`]: {
      handle: post,
      form: ({ request }) => fieldsForm(request.path),
      ...changeByForm(name, `New${name}`, changeSchema, byRole.needs, byRole.scopes)
    },
    [`DELETE ${rowPath}`]: {
      handle: remove,
      id: `delete${name}`,
      summary: texts.remove,
      ...byRole
    }
  }
}
