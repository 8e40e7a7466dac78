/** Area C (protocol §3): quotes, customers, and queries as resources. */
import { changePauseMs } from "./limits.ts"
import { createdOf, defined, Gone, type HttpTransport, type Json, type JsonObject,
  type ListingOptions, listOf, newIdempotencyKey, NotFound, numberOf, optionalNumber,
  optionalObject, optionalText, pathOf, type RequestContentBody, textOf, withQuery,
  wordOf } from "./transport/index.ts"

/** A quote. The amount is text, since the service stores its exact digits. */
export interface Quote {
  readonly href: string
  readonly symbol: string
  readonly amount: string
  readonly currency: string | undefined
  readonly updated: string
}

/** A customer, with the requested fields. */
export interface Customer {
  readonly href: string
  readonly id?: string
  readonly name?: string
  readonly age?: number
  readonly email?: string
  readonly city?: string
  readonly country?: string
}

/** A field of a customer. */
export type CustomerField = Exclude<keyof Customer, "href">

/** A condition on a field, or on other conditions. */
export type QueryCondition =
  | {
    readonly field: string
    readonly op?:
      | "eq"
      | "ne"
      | "lt"
      | "le"
      | "gt"
      | "ge"
      | "contains"
      | "starts"
      | "ends"
      | undefined
    readonly value: string | number
  }
  | { readonly all: ReadonlyArray<QueryCondition> }
  | { readonly any: ReadonlyArray<QueryCondition> }
  | { readonly not: QueryCondition }

/** A query, as docs/queries.md describes it. */
export interface Query {
  readonly on: "customers" | "quotes"
  readonly title?: string | undefined
  /** All of these hold. */
  readonly where?: ReadonlyArray<QueryCondition> | undefined
  readonly return?: ReadonlyArray<string> | undefined
  readonly order?: { readonly by: string; readonly direction?: "asc" | "desc" } | undefined
  /** Rows over all pages. */
  readonly limit?: number | undefined
}

/** The rows to read, as documents. */
export interface TableQuery extends ListingOptions {
  /** Only customers of this age or older. */
  readonly agemin?: number | undefined
  /** Fields to read; all by default. */
  readonly fields?: ReadonlyArray<string> | undefined
  /** URI of a query. */
  readonly query?: string | undefined
}

/** The customers to read. */
export interface CustomerQuery extends TableQuery {
  readonly fields?: ReadonlyArray<CustomerField> | undefined
}

/** A file of customers, and how to load it. */
export interface CustomerFile {
  /** `text/csv`, `application/x-ndjson`, or XML or JSON. */
  readonly contentType: string
  /** Skips rows with a fault; by default a fault refuses the whole file. */
  readonly skipInvalidRows?: boolean | undefined
  /** Called with the progress, at first and while rows are stored. */
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

/** The progress of loading a file. */
export interface LoadProgress {
  readonly href: string
  readonly status: "pending" | "done"
  /** Rows of the file. */
  readonly rows: number
  /** Rows that are processed. */
  readonly read: number
  readonly created: number
  readonly replaced: number
  readonly skipped: number
  /** Faults of skipped rows; the service reports a limited number. */
  readonly problems: ReadonlyArray<{ readonly row: number; readonly detail: string }>
}

const quoteOf = (document: JsonObject): Quote => {
  const price = optionalObject(document, "price")
  return {
    href: textOf(document, "href"),
    symbol: textOf(document, "symbol"),
    amount: textOf(document, "price"),
    currency: price && optionalText(price, "currency"),
    updated: textOf(document, "updated")
  }
}

const customerOf = (document: JsonObject): Customer => ({
  href: textOf(document, "href"),
  ...defined({
    id: optionalText(document, "id"),
    name: optionalText(document, "name"),
    age: optionalNumber(document, "age"),
    email: optionalText(document, "email"),
    city: optionalText(document, "city"),
    country: optionalText(document, "country")
  })
})

/** Conditions, grouped by element as in the document. */
const grouped = (conditions: ReadonlyArray<QueryCondition>): JsonObject => {
  const groups: Record<string, Array<Json>> = {}
  const add = (name: string, value: Json): void => {
    groups[name] = [...groups[name] ?? [], value]
  }
  for (const one of conditions) {
    if ("field" in one) {
      add("where", { field: one.field, ...defined({ op: one.op }), value: String(one.value) })
    } else if ("all" in one) add("all", grouped(one.all))
    else if ("any" in one) add("any", grouped(one.any))
    else add("not", grouped([one.not]))
  }
  return groups
}

const documentOf = (
  { limit, on, order, return: fields, title, where = [] }: Query
): JsonObject => ({
  on,
  ...grouped(where),
  ...defined({
    title,
    return: fields?.join(" "),
    order: order && { ...order },
    limit: limit?.toString()
  })
})

const loadProgressOf = (document: JsonObject): LoadProgress => ({
  href: textOf(document, "href"),
  status: wordOf(document, "status", ["pending", "done"]),
  rows: numberOf(document, "rows"),
  read: numberOf(document, "read"),
  created: numberOf(document, "created"),
  replaced: numberOf(document, "replaced"),
  skipped: numberOf(document, "skipped"),
  problems: listOf(document, "problem").map((problem) => ({
    row: numberOf(problem, "row"),
    detail: textOf(problem, "text")
  }))
})

const quotePath = (symbol: string): string => `/quotes/${encodeURIComponent(symbol)}`

const customerPath = (id: string): string => `/customers/${encodeURIComponent(id)}`

/** Quotes, customers and queries of a service. */
export class Queries {
  private readonly transport: HttpTransport

  constructor(transport: HttpTransport) {
    this.transport = transport
  }

  /** C1: the quote of a symbol; undefined when there is none. */
  async quote(symbol: string, signal?: AbortSignal): Promise<Quote | undefined> {
    const uri = withQuery("/quotes", { quotename: symbol })
    try {
      return quoteOf(await this.transport.get(uri, signal))
    } catch (error) {
      if (error instanceof NotFound || error instanceof Gone) return undefined
      throw error
    }
  }

  /** All quotes, or those of a query. */
  async *quotes(
    { pageSize, query, signal }: ListingOptions & { readonly query?: string | undefined } = {}
  ): AsyncGenerator<Quote, void, void> {
    for await (const row of this.rows("quotes", { pageSize, query, signal })) yield quoteOf(row)
  }

  /** C3 (role `quotes`). */
  async setQuote(
    symbol: string,
    price: { readonly amount: string; readonly currency: string }
  ): Promise<Quote> {
    const { amount, currency } = price
    const document = { price: { currency, text: amount } }
    return quoteOf((await this.transport.put(quotePath(symbol), document)).document)
  }

  /** C4 (role `quotes`). */
  removeQuote(symbol: string): Promise<void> {
    return this.transport.remove(quotePath(symbol))
  }

  /** C2: customers in the order of their ids, or of the query. */
  async *customers(options: CustomerQuery = {}): AsyncGenerator<Customer, void, void> {
    for await (const row of this.rows("customers", options)) yield customerOf(row)
  }

  /** Rows of a table as documents, with the fields of a query; page by page. */
  rows(
    table: "customers" | "quotes",
    { agemin, fields, query, ...options }: TableQuery = {}
  ): AsyncGenerator<JsonObject, void, void> {
    const parameters = { agemin, query, return: fields?.join(",") }
    return this.transport.list(`/${table}`, table.slice(0, -1), (row) => row, options, parameters)
  }

  /**
   * Creates or replaces every customer of a file, all of them or none (role `customers`). Resolves
   * when all rows are in the table.
   */
  async loadCustomers(
    file: RequestContentBody,
    { contentType, onProgress, signal, skipInvalidRows = false }: CustomerFile
  ): Promise<LoadProgress> {
    const prefer = skipInvalidRows ? "respond-async, handling=lenient" : "respond-async"
    let { document } = await this.transport.request({
      method: "PUT",
      uri: "/customers",
      headers: { "content-type": contentType, prefer, "idempotency-key": newIdempotencyKey() },
      body: file,
      timeoutMs: null,
      signal
    })
    for (;;) {
      const progress = loadProgressOf(document)
      onProgress?.(progress)
      if (progress.status === "done") return progress
      await this.transport.pause(changePauseMs, signal)
      document = await this.transport.get(pathOf(progress.href), signal)
    }
  }

  /** Creates or replaces a customer (role `customers`). */
  async setCustomer(
    id: string,
    { age, ...texts }: Omit<Customer, "href" | "id">
  ): Promise<Customer> {
    const document = defined({ ...texts, age: age?.toString() })
    return customerOf((await this.transport.put(customerPath(id), document)).document)
  }

  removeCustomer(id: string): Promise<void> {
    return this.transport.remove(customerPath(id))
  }

  /** Creates a query. The URI `edit` is secret: it allows changing and removing the query. */
  async create(query: Query): Promise<{ readonly href: string; readonly edit: string }> {
    return createdOf(await this.transport.post("/queries", documentOf(query)))
  }

  async replace(edit: string, query: Query): Promise<void> {
    await this.transport.put(edit, documentOf(query))
  }

  remove(edit: string): Promise<void> {
    return this.transport.remove(edit)
  }
}
