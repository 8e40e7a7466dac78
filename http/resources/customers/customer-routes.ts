/** Customers: C2, single customers, and whole files of them (protocol §3). */
import { Effect } from "effect"
import type { HtmlForm } from "../../formats/html/index.ts"
import type { FormFields } from "../../formats/index.ts"
import { type Call, empty, fail, type HandlerAnswer, type HandlerFailure, type Input, inputOf,
  keepingTyped, queryOf, type ResourceHandler, type Route, type Service, shown,
  uri } from "../../pipeline/index.ts"
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
    const text = (yield* queryOf(call)).get("agemin")?.trim() ?? ""
    if (text !== "" && !/^[+-]?\d{1,9}$/.test(text)) {
      return yield* fail("malformed", "agemin must be a whole number")
    }
    const narrowed = text === "" ? {} : { least: Number(text) }
    const listing = yield* listRows(service, call, customersTable, collectionPath, narrowed)
    return shown(customersView(service, listing, text))
  })

/** The id in the path; 404 for what can be none. */
const idOf = ({ parameters }: Call): Effect.Effect<string, HandlerFailure> => {
  const id = parameters.get("customer")
  return parameters.secret("customer") === undefined && isCustomerId(id)
    ? Effect.succeed(id)
    : Effect.fail(fail("not-found"))
}

const givenOf = (input: Input): Effect.Effect<CustomerInput, HandlerFailure> => {
  if (input._tag === "Form") {
    const entries = input.fields.entries().filter(([name]) => name !== "method")
    return Effect.succeed(Object.fromEntries(entries))
  }
  const given = givenIn(input.root)
  return given.ok
    ? Effect.succeed(given.value)
    : Effect.fail(fail("unprocessable", given.fault))
}

const set = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  id: string,
  given: CustomerInput
): Effect.fn.Return<Replaced, HandlerFailure> {
  const named = idGiven(given)
  if (named !== undefined && named !== id) {
    return yield* fail("unprocessable", "the document names another customer than its URI")
  }
  const row = rowOf(given)
  if (!row.ok) return yield* fail("unprocessable", row.fault)
  const value = JSON.stringify(row.value)
  return yield* replaceKept(service, call, kept, id, () => Effect.succeed(value))
})

const made = (service: Service, id: string, { isNew, value }: Replaced): HandlerAnswer => {
  const view = customerView(service, id, value)
  if (!isNew) return shown(view)
  return shown(view, { status: 201, headers: [["Location", uri(service, customerPath(id))]] })
}

const put = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "customers")
    const id = yield* idOf(call)
    const given = yield* givenOf(yield* inputOf(call, "customer"))
    return made(service, id, yield* set(service, call, id, given))
  })

const remove = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "customers")
    yield* removeKept(service, call, kept, yield* idOf(call))
    return empty(204)
  })

const seeOther = (service: Service, path: string): HandlerAnswer =>
  empty(303, [["Location", uri(service, path)], ["Cache-Control", "no-store"]])

/** A new customer under an id that the service chooses. */
const create = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "customers")
    const input = yield* inputOf(call, "customer", { form: true })
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
    const input = yield* inputOf(call, "customer", { form: true })
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
      return yield* fail("precondition-failed", "a file of customers has no state to compare")
    }
    const format = formatOf(headers.get("content-type"))
    if (format === undefined) {
      return yield* fail("unsupported-media-type", `send one of ${acceptedFiles}, in UTF-8`, [
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
      shown(loadView(service, id, now), {
        status,
        headers: [
          ["Location", uri(service, loadPath(id))],
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
      return yield* fail("not-found")
    }
    const value = yield* service.records.get(loadsTable, id)
    if (value === undefined) return yield* fail("not-found")
    return shown(loadView(service, id, parseLoad(value)))
  })

const readOne = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const id = yield* idOf(call)
    return shown(customerView(service, id, yield* readKept(service, kept, id)))
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
      GET: { handle: keepingTyped(askedForm, list(service)) },
      POST: { handle: keepingTyped(() => fieldsForm(collectionPath), create(service)) },
      PUT: { handle: load(service), body: "stream" }
    }
  },
  {
    pattern: `${collectionPath}/{customer}`,
    methods: {
      GET: { handle: readOne(service) },
      PUT: { handle: put(service) },
      POST: { handle: keepingTyped(({ request }) => fieldsForm(request.path), post(service)) },
      DELETE: { handle: remove(service) }
    }
  },
  { pattern: "/loads/{load}", methods: { GET: { handle: readLoad(service) } } }
]
