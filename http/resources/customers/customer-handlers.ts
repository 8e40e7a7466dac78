/** Customers: C2, single customers, and whole files of them (protocol §3). */
import { Effect } from "effect"
import { isRandomId } from "../../auth/credentials/index.ts"
import { type HtmlForm, versionControl } from "../../formats/html/index.ts"
import type { FormFields } from "../../formats/index.ts"
import { absoluteUri, type Call, defineHandler, type HandlerAnswer, type HandlerFailure, httpError,
  type RequestInput, unprocessable, unsupportedMediaType,
  viewAnswer } from "../../pipeline/index.ts"
import { listRows, readRowQuery, requireRole, type RowResource } from "../rows/index.ts"
import { acceptedFiles, formatOf } from "./customer-files.ts"
import { type CustomerInput, customerInputIn, idIn, isCustomerId, rowOf } from "./customer-input.ts"
import { ageminDigitsMax, customerChanges, customerRemoval, customersTable,
  goneCustomers } from "./customer-table.ts"
import { collectionPath, customerPath, customersView, customerView, fieldsForm, findForm,
  loadView } from "./customer-views.ts"
import { applyLoad, continueLoad } from "./load-application.ts"
import { receiveLoad } from "./load-upload.ts"
import { type CustomerLoad, loadPath, loadsTable, parseLoad } from "./load.ts"

/** Fields of a form that are none of the customer's. */
const formOnly: ReadonlyArray<string> = ["method", versionControl().name]

const readFields = (input: RequestInput): Effect.Effect<CustomerInput, HandlerFailure> => {
  if (input._tag === "Form") {
    const entries = input.fields.entries().filter(([name]) => !formOnly.includes(name))
    return Effect.succeed(Object.fromEntries(entries))
  }
  const fields = customerInputIn(input.root)
  return fields.ok ? Effect.succeed(fields.value) : unprocessable(fields.fault)
}

export const customers: RowResource = {
  schema: customersTable,
  table: customersTable.name,
  goneTable: goneCustomers,
  view: customerView,
  changes: customerChanges,
  removal: customerRemoval,
  role: "customers",
  root: "customer",
  parameter: "customer",
  isKey: isCustomerId,
  collectionPath,
  path: customerPath,
  fieldsForm,
  readInput: Effect.fnUntraced(function*(id, input) {
    const fields = yield* readFields(input)
    const ownId = idIn(fields)
    if (ownId !== undefined && ownId !== id) {
      return yield* httpError("unprocessable", "the document names another customer than its URI")
    }
    const row = rowOf(fields)
    return row.ok ? JSON.stringify(row.value) : yield* httpError("unprocessable", row.fault)
  }),
  // An id begins with a letter or digit, which a random one may not.
  newKey: (call) => Effect.succeed(`c${call.ids.id("customer")}`)
}

const ageminPattern = new RegExp(`^[+-]?\\d{1,${ageminDigitsMax}}$`)

/** C2. */
export const findCustomers = defineHandler(function*(service, call) {
  // Browsers send empty fields of a form.
  const text = (yield* readRowQuery(call)).get("agemin")?.trim() ?? ""
  if (text !== "" && !ageminPattern.test(text)) {
    return yield* httpError("malformed", "agemin must be a whole number")
  }
  const restriction = text === "" ? {} : { least: Number(text) }
  const listing = yield* listRows(service, call, customersTable, collectionPath, restriction)
  return viewAnswer(customersView(service, listing, text))
})

/** Whether a preference (RFC 7240) is among those of the request. */
const prefers = ({ request }: Call, preference: string): boolean =>
  (request.headers.get("prefer") ?? "").toLowerCase().split(/[,;]/)
    .some((one) => one.replace(/[\s"]/g, "") === preference)

/**
 * A whole file: creates or replaces all of its rows, or none; other customers remain. With `Prefer:
 * handling=lenient` it skips invalid rows. With `respond-async` the answer does not wait until the
 * rows are in the table. With an Idempotency-Key, a repetition finds the load of the first upload.
 */
export const putCustomers = defineHandler(function*(service, call) {
  yield* requireRole(service, call, "customers")
  const { headers } = call.request
  if (headers.has("if-match") || headers.has("if-none-match")) {
    return yield* httpError("precondition-failed", "a file of customers has no entity tag")
  }
  const format = formatOf(headers.get("content-type"))
  if (format === undefined) {
    const detail = `send one of ${acceptedFiles}, in UTF-8`
    return yield* unsupportedMediaType(call.request.method, acceptedFiles, detail)
  }
  const isLenient = prefers(call, "handling=lenient")
  const { id, load } = yield* receiveLoad(service, call, format, isLenient)
  const isAsync = prefers(call, "respond-async")
  const applied = [
    ...isLenient ? ["handling=lenient"] : [],
    ...isAsync ? ["respond-async"] : []
  ]
  const answer = (status: number, shown: CustomerLoad): HandlerAnswer =>
    viewAnswer(loadView(service, id, shown), {
      status,
      headers: [
        ["Location", absoluteUri(service, loadPath(id))],
        ["Cache-Control", "no-store"],
        ...applied.length === 0 ? [] : [["Preference-Applied", applied.join(", ")] as const]
      ]
    })
  // An earlier upload with the same Idempotency-Key has stored this load.
  if (load.state === "done") return answer(200, load)
  // The load is durable now: if this node fails, another one or the next start completes it.
  const applying = applyLoad(service, id, load).pipe(
    Effect.catch(() => Effect.as(continueLoad(service, id), undefined))
  )
  if (isAsync) {
    yield* Effect.forkDetach(applying)
    return answer(202, load)
  }
  const done = yield* applying
  return done === undefined ? answer(202, load) : answer(200, done)
})

export const getLoad = defineHandler(function*(service, call) {
  const id = call.parameters.get("load")
  if (!isRandomId(id) || call.parameters.secret("load") !== undefined) {
    return yield* httpError("not-found")
  }
  const value = yield* service.records.get(loadsTable, id)
  if (value === undefined) return yield* httpError("not-found")
  return viewAnswer(loadView(service, id, parseLoad(value)))
})

/** The form of a listing that failed, with its query. */
export const sentFindForm = (_: Call, fields: FormFields): HtmlForm => {
  const query = fields.get("query")
  return findForm(query === undefined ? {} : { query })
}
