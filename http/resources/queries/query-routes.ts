/** Queries as resources (protocol §3). */
import { Effect } from "effect"
import { sameHash } from "../../../actors/index.ts"
import { secretHash } from "../../auth/credentials/index.ts"
import { optionalAccount, requireAccount } from "../../auth/index.ts"
import type { HtmlForm } from "../../formats/html/index.ts"
import type { FormFields } from "../../formats/index.ts"
import type { Element } from "../../formats/xml/index.ts"
import { absoluteUri, type Call, clientAddress, emptyAnswer, type HandlerAnswer,
  type HandlerFailure, httpError, nextLink, readInput, readPageRequest, type RequestInput,
  type ResourceHandler, type Route, type Service, viewAnswer,
  withFormRedisplay } from "../../pipeline/index.ts"
import { queryIn, type RowQuery } from "../../query-engine/index.ts"
import { addressOf, collectionPath, endingChanges, goneQueries, isOver, isQueryId, mayMake,
  ownersTable, parseStored, queriesTable, queryPath, readKept, type RecordResource, removalChanges,
  removeKept, replaceKept, storedChanges, type StoredQuery, storedRemoval } from "../rows/index.ts"
import { fromForm, sentForm, tables } from "./query-forms.ts"
import { queriesView, queryView } from "./query-views.ts"

const keptWith = (secret?: string): RecordResource => ({
  table: queriesTable,
  goneTable: goneQueries,
  view: (service, id, value) => queryView(service, id, value, secret),
  changes: storedChanges,
  removal: (id, before) => [
    ...storedRemoval(id, before),
    ...removalChanges(id, parseStored(before))
  ],
  isOver: ({ nowMs }, value) => isOver(parseStored(value), nowMs())
})

/** The query in the path, and the secret that came with it. */
interface Named {
  readonly id: string
  readonly secret: string | undefined
  readonly kept: RecordResource
}

const named = ({ parameters }: Call): Effect.Effect<Named, HandlerFailure> => {
  const id = parameters.get("query")
  const secret = parameters.secret("query")
  return isQueryId(id)
    ? Effect.succeed({ id, secret, kept: keptWith(secret) })
    : Effect.fail(httpError("not-found"))
}

/** A wrong secret is told no more than an unknown query (protocol §0). */
const proven = ({ editHash }: StoredQuery, secret: string): Effect.Effect<void, HandlerFailure> =>
  sameHash(secretHash(secret), editHash) ? Effect.void : Effect.fail(httpError("not-found"))

/** Whoever has the edit URI may change a query, and its owner, and an admin. */
const mayChange = (
  service: Service,
  call: Call,
  { secret }: Named
) =>
  Effect.fnUntraced(function*(value: string): Effect.fn.Return<void, HandlerFailure> {
    const stored = parseStored(value)
    if (secret !== undefined) return yield* proven(stored, secret)
    const { name, roles } = yield* requireAccount(service, call)
    if (stored.owner === name || roles.includes("admin")) return
    return yield* httpError("forbidden", "this is for its owner, or who has its edit URI")
  })

/** What a form's text holds, as if it had been sent by itself. */
const writtenIn = (
  { documentParser }: Call,
  document: string
): Effect.Effect<Element, HandlerFailure> => {
  const parsed = documentParser.parseXml(Buffer.from(document.trim()))
  if (!parsed.ok) return Effect.fail(httpError("malformed", `document: ${parsed.fault.detail}`))
  return parsed.value.name === "query"
    ? Effect.succeed(parsed.value)
    : Effect.fail(httpError("unprocessable", "the root element of the document must be query"))
}

const elementOf = (
  call: Call,
  input: RequestInput
): Effect.Effect<Element, HandlerFailure> => {
  if (input._tag === "Document") return Effect.succeed(input.root)
  const document = input.fields.get("document")
  return document === undefined ? Effect.succeed(fromForm(input.fields)) : writtenIn(call, document)
}

const queryOfInput = Effect.fnUntraced(
  function*(call: Call, input: RequestInput): Effect.fn.Return<RowQuery, HandlerFailure> {
    const query = queryIn(tables, yield* elementOf(call, input))
    return query.ok ? query.value : yield* httpError("unprocessable", query.fault)
  }
)

const create = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const account = yield* optionalAccount(service, call)
    const query = yield* queryOfInput(call, yield* readInput(call, "query", { form: true }))
    const { ids, request } = call
    const client = clientAddress(request, service.settings.trustedProxies)
    if (account === undefined) yield* mayMake(service, client)
    const [id, secret] = [ids.id("query"), ids.secret("edit")]
    const stored: StoredQuery = {
      query,
      ...account === undefined ? { address: addressOf(client) } : { owner: account.name },
      editHash: secretHash(secret),
      createdMs: service.nowMs()
    }
    const value = JSON.stringify(stored)
    // A repetition of a keyed request finds what the first attempt left.
    yield* service.records.writeIf(
      [{ table: queriesTable, key: id, value: null }],
      [...storedChanges(id, value), ...endingChanges(id, stored)]
    )
    return viewAnswer(queryView(service, id, value, secret), {
      status: 201,
      headers: [["Location", absoluteUri(service, queryPath(id))], ["Cache-Control", "no-store"]]
    })
  })

const read = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const { id, kept, secret } = yield* named(call)
    const value = yield* readKept(service, kept, id)
    if (secret === undefined) return viewAnswer(queryView(service, id, value))
    yield* proven(parseStored(value), secret)
    return viewAnswer(queryView(service, id, value, secret), {
      headers: [["Cache-Control", "no-store"]]
    })
  })

const replaced = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: Named,
  input: RequestInput
): Effect.fn.Return<string, HandlerFailure> {
  const { id, kept } = place
  yield* mayChange(service, call, place)(yield* readKept(service, kept, id))
  const query = yield* queryOfInput(call, input)
  const { value } = yield* replaceKept(service, call, kept, id, (before) =>
    // Who was allowed to change it a moment ago must not make it anew.
    before === undefined
      ? Effect.fail(httpError("gone"))
      : Effect.succeed(JSON.stringify({ ...parseStored(before), query })))
  return value
})

const put = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const place = yield* named(call)
    const value = yield* replaced(service, call, place, yield* readInput(call, "query"))
    return viewAnswer(queryView(service, place.id, value, place.secret), {
      headers: [["Cache-Control", "no-store"]]
    })
  })

const removed = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: Named
): Effect.fn.Return<void, HandlerFailure> {
  yield* removeKept(service, call, place.kept, place.id, mayChange(service, call, place))
})

const remove = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* removed(service, call, yield* named(call))
    return emptyAnswer(204)
  })

/** PUT and DELETE from the forms of the query's page: HTML has neither. */
const post = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const place = yield* named(call)
    const input = yield* readInput(call, "query", { form: true })
    const isRemoval = input._tag === "Form" && input.fields.get("method") === "delete"
    if (isRemoval) yield* removed(service, call, place)
    else yield* replaced(service, call, place, input)
    const path = isRemoval ? collectionPath : call.request.path
    return emptyAnswer(303, [["Location", absoluteUri(service, path)], [
      "Cache-Control",
      "no-store"
    ]])
  })

/** The caller's own queries. */
const list = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const account = yield* optionalAccount(service, call)
    const page = yield* readPageRequest(call, isQueryId)
    const prefix = `${account?.name ?? ""}/`
    const { after, limit } = page
    const range = { prefix, limit, ...after === undefined ? {} : { after: prefix + after } }
    const { records } = service
    const [keys = []] = account === undefined ? [] : yield* records.keys(ownersTable, [range])
    const ids = keys.map((key) => key.slice(prefix.length))
    const values = yield* records.getMany(queriesTable, ids)
    const stored = ids.flatMap((id, at) => {
      const value = values[at]
      return value === undefined ? [] : [{ id, query: parseStored(value).query }]
    })
    const next = nextLink(absoluteUri(service, collectionPath), page, ids)
    return viewAnswer(queriesView(service, stored, next), {
      headers: [["Vary", "Authorization"], ["Cache-Control", "private, no-cache"]]
    })
  })

const sent = ({ request }: Call, fields: FormFields): HtmlForm => sentForm(request.path, fields)

/** The rows of queries. */
export const queryRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern: collectionPath,
    methods: {
      GET: { handle: list(service) },
      POST: { handle: withFormRedisplay(sent, create(service)) }
    }
  },
  {
    pattern: `${collectionPath}/{query}`,
    methods: {
      GET: { handle: read(service) },
      PUT: { handle: put(service) },
      POST: { handle: withFormRedisplay(sent, post(service)) },
      DELETE: { handle: remove(service) }
    }
  }
]
