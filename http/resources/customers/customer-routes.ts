/** Customers: C2, single customers, and whole files of them (protocol §3). */
import { Effect } from "effect"
import type { HtmlForm } from "../../formats/html/index.ts"
import type { FormFields } from "../../formats/index.ts"
import { absoluteUri, type Call, emptyAnswer, type HandlerAnswer, type HandlerFailure, httpError,
  readInput, readQuery, type RequestInput, type ResourceHandler, type Route, type Service,
  viewAnswer, withFormRedisplay } from "../../pipeline/index.ts"
import { listRows, readKept, type RecordResource, removeKept, type Replaced, replaceKept,
  requireRole } from "../rows/index.ts"
import { acceptedFiles, formatOf } from "./customer-files.ts"
import { type CustomerInput, givenIn, idGiven, isCustomerId, rowOf } from "./customer-input.ts"
import { customerChanges, customerRemoval, customersTable,
  goneCustomers } from "./customer-table.ts"
import { collectionPath, customerPath, customersView, customerView, fieldsForm, findForm,
  loadView } from "./customer-views.ts"
import { applyLoad } from "./load-application.ts"
import { receive } from "./load-upload.ts"
import { type CustomerLoad, isLoadId, loadPath, loadsTable, parseLoad } from "./load.ts"

const kept: RecordResource = {
  table: customersTable.name,
  goneTable: goneCustomers,
  view: customerView,
  changes: customerChanges,
  removal: customerRemoval
}

/** C2. */
const list = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    // A form that is sent empty says nothing.
    const text = (yield* readQuery(call)).get("agemin")?.trim() ?? ""
    if (text !== "" && !/^[+-]?\d{1,9}$/.test(text)) {
      return yield* httpError("malformed", "agemin must be a whole number")
    }
    const narrowed = text === "" ? {} : { least: Number(text) }
    const listing = yield* listRows(service, call, customersTable, collectionPath, narrowed)
    return viewAnswer(customersView(service, listing, text))
  })

/** The id in the path; 404 for what can be none. */
const idOf = ({ parameters }: Call): Effect.Effect<string, HandlerFailure> => {
  const id = parameters.get("customer")
  return parameters.secret("customer") === undefined && isCustomerId(id)
    ? Effect.succeed(id)
    : Effect.fail(httpError("not-found"))
}

const givenOf = (input: RequestInput): Effect.Effect<CustomerInput, HandlerFailure> => {
  if (input._tag === "Form") {
    const entries = input.fields.entries().filter(([name]) => name !== "method")
    return Effect.succeed(Object.fromEntries(entries))
  }
  const given = givenIn(input.root)
  return given.ok
    ? Effect.succeed(given.value)
    : Effect.fail(httpError("unprocessable", given.fault))
}

const set = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  id: string,
  given: CustomerInput
): Effect.fn.Return<Replaced, HandlerFailure> {
  const named = idGiven(given)
  if (named !== undefined && named !== id) {
    return yield* httpError("unprocessable", "the document names another customer than its URI")
  }
  const row = rowOf(given)
  if (!row.ok) return yield* httpError("unprocessable", row.fault)
  const value = JSON.stringify(row.value)
  return yield* replaceKept(service, call, kept, id, () => Effect.succeed(value))
})

const made = (service: Service, id: string, { isNew, value }: Replaced): HandlerAnswer => {
  const view = customerView(service, id, value)
  if (!isNew) return viewAnswer(view)
  return viewAnswer(view, {
    status: 201,
    headers: [["Location", absoluteUri(service, customerPath(id))]]
  })
}

const put = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "customers")
    const id = yield* idOf(call)
    const given = yield* givenOf(yield* readInput(call, "customer"))
    return made(service, id, yield* set(service, call, id, given))
  })

const remove = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "customers")
    yield* removeKept(service, call, kept, yield* idOf(call))
    return emptyAnswer(204)
  })

const seeOther = (service: Service, path: string): HandlerAnswer =>
  emptyAnswer(303, [["Location", absoluteUri(service, path)], ["Cache-Control", "no-store"]])

/** A new customer under an id that the service chooses. */
const create = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "customers")
    const input = yield* readInput(call, "customer", { form: true })
    // An id begins with a letter, which random ones may not.
    const id = `c${call.ids.id("customer")}`
    const replaced = yield* set(service, call, id, yield* givenOf(input))
    if (input._tag === "Form") return seeOther(service, customerPath(id))
    return made(service, id, { ...replaced, isNew: true })
  })

/** PUT and DELETE from the forms of the customer's page. */
const post = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "customers")
    const id = yield* idOf(call)
    const input = yield* readInput(call, "customer", { form: true })
    if (input._tag === "Form" && input.fields.get("method") === "delete") {
      yield* removeKept(service, call, kept, id)
      return seeOther(service, collectionPath)
    }
    yield* readKept(service, kept, id)
    yield* set(service, call, id, yield* givenOf(input))
    return seeOther(service, customerPath(id))
  })

/** Whether a preference (RFC 7240) is among those of the request. */
const prefers = ({ request }: Call, preference: string): boolean =>
  (request.headers.get("prefer") ?? "").toLowerCase().split(/[,;]/)
    .some((one) => one.replace(/[\s"]/g, "") === preference)

/**
 * A whole file: all of its rows are made or replaced, or nothing is; other customers stay as they
 * are. With `Prefer: handling=lenient` rows with a fault are passed over; with `respond-async` the
 * answer does not wait until the rows are in the table, which they will be.
 */
const load = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "customers")
    const { headers } = call.request
    if (headers.has("if-match") || headers.has("if-none-match")) {
      return yield* httpError("precondition-failed", "a file of customers has no state to compare")
    }
    const format = formatOf(headers.get("content-type"))
    if (format === undefined) {
      return yield* httpError("unsupported-media-type", `send one of ${acceptedFiles}, in UTF-8`, [
        ["Accept", acceptedFiles]
      ])
    }
    const isLenient = prefers(call, "handling=lenient")
    const { id, load: begun } = yield* receive(service, call, format, isLenient)
    const isAsync = prefers(call, "respond-async")
    const applied = [
      ...isLenient ? ["handling=lenient"] : [],
      ...isAsync ? ["respond-async"] : []
    ]
    const answer = (status: number, now: CustomerLoad): HandlerAnswer =>
      viewAnswer(loadView(service, id, now), {
        status,
        headers: [
          ["Location", absoluteUri(service, loadPath(id))],
          ["Cache-Control", "no-store"],
          ...applied.length === 0 ? [] : [["Preference-Applied", applied.join(", ")] as const]
        ]
      })
    // From here on it is certain to be done: by another node, or after the next start, if not here.
    if (isAsync) {
      yield* Effect.forkDetach(Effect.ignore(applyLoad(service, id, begun)))
      return answer(202, begun)
    }
    const done = yield* applyLoad(service, id, begun).pipe(
      Effect.catch(() => Effect.succeed(undefined))
    )
    return done === undefined ? answer(202, begun) : answer(200, done)
  })

const readLoad = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const id = call.parameters.get("load")
    if (!isLoadId(id) || call.parameters.secret("load") !== undefined) {
      return yield* httpError("not-found")
    }
    const value = yield* service.records.get(loadsTable, id)
    if (value === undefined) return yield* httpError("not-found")
    return viewAnswer(loadView(service, id, parseLoad(value)))
  })

const readOne = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const id = yield* idOf(call)
    return viewAnswer(customerView(service, id, yield* readKept(service, kept, id)))
  })

/** The form that asked; of a query that went wrong it is kept. */
const askedForm = (_: Call, fields: FormFields): HtmlForm => {
  const query = fields.get("query")
  return findForm(query === undefined ? {} : { query })
}

/** The rows of customers. */
export const customerRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern: collectionPath,
    methods: {
      GET: { handle: withFormRedisplay(askedForm, list(service)) },
      POST: { handle: withFormRedisplay(() => fieldsForm(collectionPath), create(service)) },
      PUT: { handle: load(service), body: "stream" }
    }
  },
  {
    pattern: `${collectionPath}/{customer}`,
    methods: {
      GET: { handle: readOne(service) },
      PUT: { handle: put(service) },
      POST: { handle: withFormRedisplay(({ request }) => fieldsForm(request.path), post(service)) },
      DELETE: { handle: remove(service) }
    }
  },
  { pattern: "/loads/{load}", methods: { GET: { handle: readLoad(service) } } }
]
