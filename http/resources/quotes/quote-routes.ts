/** Quotes: C1, C3 and C4 (protocol §3). */
import { Effect } from "effect"
import { absoluteUri, type Call, emptyAnswer, type HandlerAnswer, type HandlerFailure, httpError,
  readInput, readQuery, type RequestInput, type ResourceHandler, type Route, type Service,
  viewAnswer, withFormRedisplay } from "../../pipeline/index.ts"
import { listRows, readKept, type RecordResource, removeKept, type Replaced, replaceKept,
  requireRole } from "../rows/index.ts"
import { isSymbol, quoteOf, symbolGiven } from "./quote-input.ts"
import { goneQuotes, quotesTable } from "./quote-table.ts"
import { collectionPath, fieldsForm, quotePath, quotesView, quoteView } from "./quote-views.ts"

const kept: RecordResource = {
  table: quotesTable.name,
  goneTable: goneQuotes,
  view: quoteView,
  changes: (key, value) => [{ table: quotesTable.name, key, value }],
  removal: (key) => [
    { table: quotesTable.name, key, value: null },
    { table: goneQuotes, key, value: "" }
  ]
}

const readQuote = Effect.fnUntraced(function*(
  service: Service,
  symbol: string
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  if (!isSymbol(symbol)) return yield* httpError("not-found")
  return viewAnswer(quoteView(service, symbol, yield* readKept(service, kept, symbol)))
})

/** C1: one quote by its symbol, or by pages all of them, or those of a query. */
const list = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const asked = yield* readQuery(call)
    const symbol = asked.get("quotename")
    if (symbol !== undefined && asked.get("query") === undefined) {
      return yield* readQuote(service, symbol)
    }
    const narrowed = symbol === undefined ? {} : { key: symbol }
    const listing = yield* listRows(service, call, quotesTable, collectionPath, narrowed)
    return viewAnswer(quotesView(service, listing))
  })

/** The symbol in the path; 404 for what can be none. */
const symbolOf = ({ parameters }: Call): Effect.Effect<string, HandlerFailure> => {
  const symbol = parameters.get("symbol")
  return parameters.secret("symbol") === undefined && isSymbol(symbol)
    ? Effect.succeed(symbol)
    : Effect.fail(httpError("not-found"))
}

const set = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  symbol: string,
  input: RequestInput
): Effect.fn.Return<Replaced, HandlerFailure> {
  const row = yield* quoteOf(input, symbol)
  const updated = new Date(service.nowMs()).toISOString()
  const value = JSON.stringify({ ...row, updated })
  return yield* replaceKept(service, call, kept, symbol, () => Effect.succeed(value))
})

/** C3. */
const put = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "quotes")
    const symbol = yield* symbolOf(call)
    const { isNew, value } = yield* set(service, call, symbol, yield* readInput(call, "quote"))
    const view = quoteView(service, symbol, value)
    if (!isNew) return viewAnswer(view)
    return viewAnswer(view, {
      status: 201,
      headers: [["Location", absoluteUri(service, quotePath(symbol))]]
    })
  })

/** C4. */
const remove = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "quotes")
    yield* removeKept(service, call, kept, yield* symbolOf(call))
    return emptyAnswer(204)
  })

const seeOther = (service: Service, path: string): HandlerAnswer =>
  emptyAnswer(303, [["Location", absoluteUri(service, path)], ["Cache-Control", "no-store"]])

/** The form of the list: HTML has no PUT. Any other document than a form is refused. */
const postAll = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "quotes")
    const input = yield* readInput(call, "quote", { form: true })
    const symbol = symbolGiven(input)
    if (symbol === undefined || !isSymbol(symbol)) {
      return yield* httpError("unprocessable", "symbol must name what is quoted")
    }
    yield* set(service, call, symbol, input)
    if (input._tag === "Form") return seeOther(service, quotePath(symbol))
    const value = yield* readKept(service, kept, symbol)
    return viewAnswer(quoteView(service, symbol, value), {
      status: 201,
      headers: [["Location", absoluteUri(service, quotePath(symbol))]]
    })
  })

/** PUT and DELETE from the forms of the quote's page. */
const post = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireRole(service, call, "quotes")
    const symbol = yield* symbolOf(call)
    const input = yield* readInput(call, "quote", { form: true })
    if (input._tag === "Form" && input.fields.get("method") === "delete") {
      yield* removeKept(service, call, kept, symbol)
      return seeOther(service, collectionPath)
    }
    yield* readKept(service, kept, symbol)
    yield* set(service, call, symbol, input)
    return seeOther(service, quotePath(symbol))
  })

/** The rows of quotes. */
export const quoteRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern: collectionPath,
    methods: {
      GET: { handle: list(service) },
      POST: { handle: withFormRedisplay(() => fieldsForm(collectionPath), postAll(service)) }
    }
  },
  {
    pattern: `${collectionPath}/{symbol}`,
    methods: {
      GET: { handle: (call) => Effect.flatMap(symbolOf(call), (one) => readQuote(service, one)) },
      PUT: { handle: put(service) },
      POST: { handle: withFormRedisplay(({ request }) => fieldsForm(request.path), post(service)) },
      DELETE: { handle: remove(service) }
    }
  }
]
