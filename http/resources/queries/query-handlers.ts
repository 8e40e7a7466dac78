/** Queries as resources (protocol §3). */
import { Effect } from "effect"
import { goneQueries, queriesTable, queryOwnersTable, sameHash } from "../../../actors/index.ts"
import { isRandomId, secretHash } from "../../auth/credentials/index.ts"
import { auditedAsAdmin } from "../../audit/index.ts"
import { callerOf, optionalAccount, requireAccount } from "../../auth/index.ts"
import type { HtmlForm } from "../../formats/html/index.ts"
import { FormFields } from "../../formats/index.ts"
import type { Element } from "../../formats/xml/index.ts"
import { absoluteUri, type Call, checkShownVersion, createdAnswer, defineHandler, emptyAnswer,
  type HandlerFailure, httpError, nextLink, noStore, readerHeaders, readInput, readPageRequest,
  redisplayOutdated, type RequestInput, seeOther, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { isChangeMade } from "../../request-record.ts"
import { queryIn, type RowQuery } from "../../query-engine/index.ts"
import { chargeQuery, collectionPath, createQuery, isExpired, networkHash, parseQuery, queryPath,
  readRecord, type RecordResource, recordVersion, removalChanges, removeRecord, replaceRecord,
  type StoredQuery } from "../rows/index.ts"
import { queryElementOf, sentForm, tables } from "./query-forms.ts"
import { queriesView, queryView } from "./query-views.ts"

/** The query in a path, and the edit secret, when the path has one. */
interface QueryRef {
  readonly id: string
  readonly secret: string | undefined
  readonly resource: RecordResource
}

/** Fails with 404 for a path that cannot name a query. */
const queryRefOf = (call: Call): Effect.Effect<QueryRef, HandlerFailure> => {
  const { parameters } = call
  const id = parameters.get("query")
  if (!isRandomId(id)) return Effect.fail(httpError("not-found"))
  const secret = parameters.secret("query")
  const resource: RecordResource = {
    table: queriesTable,
    goneTable: goneQueries,
    view: (service, key, value) => queryView(service, key, value, secret),
    changes: (key, value) => [{ table: queriesTable, key, value }],
    charge: (service, value, before) => chargeQuery(service, call, value, before),
    removal: removalChanges,
    isExpired: ({ nowMs }, value) => isExpired(parseQuery(value), nowMs())
  }
  return Effect.succeed({ id, secret, resource })
}

/** A wrong secret is indistinguishable from a missing query (protocol §0). */
const assertSecret = (
  { editHash }: StoredQuery,
  secret: string
): Effect.Effect<void, HandlerFailure> =>
  sameHash(secretHash(secret), editHash) ? Effect.void : Effect.fail(httpError("not-found"))

/** The edit URI authorizes a change, and so does the account of the owner or an admin. */
const authorizeChange = (service: Service, call: Call, { secret }: QueryRef) =>
  Effect.fnUntraced(function*(value: string): Effect.fn.Return<void, HandlerFailure> {
    const stored = parseQuery(value)
    if (secret !== undefined) return yield* assertSecret(stored, secret)
    const { name, roles } = yield* requireAccount(service, call)
    if (stored.owner === name || roles.includes("admin")) return
    return yield* httpError(
      "forbidden",
      "only its owner, or a holder of its edit URI, may change it"
    )
  })

/** A change of a query. One by an admin, without the edit URI, is in the audit log. */
const auditedChange = Effect.fnUntraced(function*<A>(
  service: Service,
  call: Call,
  { id, secret }: QueryRef,
  action: "query.change" | "query.remove",
  change: Effect.Effect<A, HandlerFailure>
): Effect.fn.Return<A, HandlerFailure> {
  if (secret !== undefined) return yield* change
  const caller = callerOf(yield* optionalAccount(service, call))
  const operation = { caller, action, target: queryPath(id) }
  return yield* auditedAsAdmin(service, call, operation, undefined, change)
})

/** Parses the document in a field of a form, which has the schema of the document in a body. */
const parseField = (
  { documentFault, documentParser }: Call,
  document: string
): Effect.Effect<Element, HandlerFailure> => {
  const parsed = documentParser.parseXml(Buffer.from(document.trim()))
  if (!parsed.ok) return Effect.fail(httpError("malformed", `document: ${parsed.fault.detail}`))
  const fault = parsed.value.name === "query"
    ? documentFault?.(parsed.value)
    : "the root element of the document must be query"
  return fault === undefined
    ? Effect.succeed(parsed.value)
    : Effect.fail(httpError("unprocessable", fault))
}

const elementOf = (
  call: Call,
  input: RequestInput
): Effect.Effect<Element, HandlerFailure> => {
  if (input._tag === "Document") return Effect.succeed(input.root)
  const document = input.fields.get("document")
  return document === undefined
    ? Effect.succeed(queryElementOf(input.fields))
    : parseField(call, document)
}

/** The query of a document or form; fails with 400 or 422. */
const queryOf = Effect.fnUntraced(
  function*(call: Call, input: RequestInput): Effect.fn.Return<RowQuery, HandlerFailure> {
    const query = queryIn(tables, yield* elementOf(call, input))
    return query.ok ? query.value : yield* httpError("unprocessable", query.fault)
  }
)

export const postQueries = defineHandler(function*(service, call) {
  const account = yield* optionalAccount(service, call)
  const query = yield* queryOf(call, yield* readInput(call, "query", { form: true }))
  const { ids, request } = call
  const { network } = service.clients.clientOf(request)
  const [id, secret] = [ids.id("query"), ids.secret("edit")]
  const stored = yield* createQuery(service, call, id, (createdMs) => ({
    query,
    ...account === undefined ? { address: networkHash(network) } : { owner: account.name },
    editHash: secretHash(secret),
    createdMs
  }))
  const view = queryView(service, id, JSON.stringify(stored), secret)
  return createdAnswer(service, queryPath(id), view, noStore)
})

export const getQuery = defineHandler(function*(service, call) {
  const { id, resource, secret } = yield* queryRefOf(call)
  const value = yield* readRecord(service, resource, id)
  if (secret === undefined) return viewAnswer(queryView(service, id, value))
  yield* assertSecret(parseQuery(value), secret)
  return viewAnswer(queryView(service, id, value, secret), { headers: noStore })
})

/** Fails for a caller that may not change the query, and for a query that is not there. */
const authorizeStored = (
  service: Service,
  call: Call,
  ref: QueryRef
): Effect.Effect<void, HandlerFailure> =>
  Effect.flatMap(readRecord(service, ref.resource, ref.id), authorizeChange(service, call, ref))

const replaceQuery = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: QueryRef,
  read: Effect.Effect<RequestInput, HandlerFailure>
): Effect.fn.Return<string, HandlerFailure> {
  const { id, resource } = ref
  yield* authorizeStored(service, call, ref)
  const input = yield* read
  const query = yield* queryOf(call, input)
  const replacement = replaceRecord(service, call, resource, id, (before) =>
    // A query that was removed since the authorization must not be created again.
    before === undefined
      ? Effect.fail(httpError("gone"))
      : Effect.as(
        checkShownVersion(input, recordVersion(before)),
        JSON.stringify({ ...parseQuery(before), query })
      ))
  const { value } = yield* auditedChange(service, call, ref, "query.change", replacement)
  return value
})

export const putQuery = defineHandler(function*(service, call) {
  const ref = yield* queryRefOf(call)
  const value = yield* replaceQuery(service, call, ref, readInput(call, "query"))
  return viewAnswer(queryView(service, ref.id, value, ref.secret), { headers: noStore })
})

const removeQuery = (
  service: Service,
  call: Call,
  ref: QueryRef
): Effect.Effect<void, HandlerFailure> =>
  auditedChange(
    service,
    call,
    ref,
    "query.remove",
    removeRecord(service, call, ref.resource, ref.id, authorizeChange(service, call, ref))
  )

export const deleteQuery = defineHandler(function*(service, call) {
  yield* removeQuery(service, call, yield* queryRefOf(call))
  return emptyAnswer(204)
})

/** PUT and DELETE from the forms of the query's page: HTML has neither. */
export const postQueryForm = defineHandler(function*(service, call) {
  const ref = yield* queryRefOf(call)
  // A stranger's form is not waited for. The body of a keyed request has been read, and a
  // repetition may find the query removed.
  if (call.key === undefined) yield* authorizeStored(service, call, ref)
  const input = yield* readInput(call, "query", { form: true })
  if (input._tag === "Form" && input.fields.get("method") === "delete") {
    yield* removeQuery(service, call, ref)
    return seeOther(service, collectionPath)
  }
  // A repetition changes nothing, also if somebody has removed the query since.
  if (!(yield* isChangeMade(service, call))) {
    const now = Effect.map(readRecord(service, ref.resource, ref.id), (value) => {
      const fields = input._tag === "Form" ? input.fields : new FormFields([])
      const saved = { query: parseQuery(value).query, version: recordVersion(value) }
      return sentForm(call.request.path, fields, saved)
    })
    const replacing = replaceQuery(service, call, ref, Effect.succeed(input))
    yield* redisplayOutdated(call, input, now, replacing)
  }
  return seeOther(service, call.request.path)
})

/** The caller's own queries. */
export const getQueries = defineHandler(function*(service, call) {
  const account = yield* optionalAccount(service, call)
  const page = yield* readPageRequest(call, isRandomId)
  const prefix = `${account?.name ?? ""}/`
  const { after, limit } = page
  const range = { prefix, limit, ...after === undefined ? {} : { after: prefix + after } }
  const { records } = service
  const [keys = []] = account === undefined ? [] : yield* records.keys(queryOwnersTable, [range])
  const ids = keys.map((key) => key.slice(prefix.length))
  const values = yield* records.getMany(queriesTable, ids)
  const stored = ids.flatMap((id, at) => {
    const value = values[at]
    return value === undefined ? [] : [{ id, query: parseQuery(value).query }]
  })
  const next = nextLink(absoluteUri(service, collectionPath), page, ids)
  return viewAnswer(queriesView(service, stored, next), { headers: readerHeaders })
})

export const sentQueryForm = ({ request }: Call, fields: FormFields): HtmlForm =>
  sentForm(request.path, fields)
