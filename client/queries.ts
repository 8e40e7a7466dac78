/** Area C (protocol §3): quotes, customers, and queries as resources. */
import { removeResource } from "./content.ts"
import { defined, Gone, type HttpTransport, type Json, type JsonObject, linkOf, type ListingOptions,
  listOf, newKey, NotFound, objectOf, optionalNumber, optionalText, pagesOf, textOf, unexpected,
  withQuery } from "./transport/index.ts"

/** A quote. The amount is a text: it is kept as it was sent, digit by digit. */
export interface Quote {
  readonly href: string
  readonly symbol: string
  readonly amount: string
  readonly currency: string | undefined
  readonly updated: string
}

/** A customer, with those of its fields that were asked for. */
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
export type CustomerField = "id" | "name" | "age" | "email" | "city" | "country"

/** Which rows: of a field, or of other conditions. */
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

/** Which customers. */
export interface CustomerQuery extends ListingOptions {
  readonly agemin?: number | undefined
  readonly fields?: ReadonlyArray<CustomerField> | undefined
  /** URI of a query. */
  readonly query?: string | undefined
}

const quoteOf = (document: JsonObject): Quote => {
  const price = document["price"]
  return {
    href: textOf(document, "href"),
    symbol: textOf(document, "symbol"),
    amount: textOf(document, "price"),
    currency: typeof price === "object" ?
      optionalText(objectOf(document, "price"), "currency")
      : undefined,
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

/** Conditions beside each other, in the form of the document. */
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
  ...defined({ title }),
  ...grouped(where),
  ...fields === undefined ? {} : { return: fields.join(" ") },
  ...order === undefined ? {} : { order: { ...order } },
  ...limit === undefined ? {} : { limit: String(limit) }
})

const asJson = { "content-type": "application/json" }

const put = (transport: HttpTransport, uri: string, document: JsonObject) =>
  transport.json({ method: "PUT", uri, headers: asJson, body: JSON.stringify(document) })

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
      return quoteOf((await this.transport.json({ method: "GET", uri, signal })).document)
    } catch (error) {
      if (error instanceof NotFound || error instanceof Gone) return undefined
      throw error
    }
  }

  /** All quotes, or those of a query. */
  async *quotes(
    { pageSize: limit, query, signal }: ListingOptions & { readonly query?: string | undefined } =
      {}
  ): AsyncGenerator<Quote, void, void> {
    const first = withQuery("/quotes", { query, limit })
    for await (const page of pagesOf(this.transport, first, { signal })) {
      yield* listOf(page, "quote").map(quoteOf)
    }
  }

  /** C3 (role `quotes`). */
  async setQuote(
    symbol: string,
    price: { readonly amount: string; readonly currency: string }
  ): Promise<Quote> {
    const { amount, currency } = price
    const document = { price: { currency, "#text": amount } }
    return quoteOf((await put(this.transport, quotePath(symbol), document)).document)
  }

  /** C4 (role `quotes`). */
  removeQuote(symbol: string): Promise<void> {
    return removeResource(this.transport, quotePath(symbol))
  }

  /** C2: customers in the order of their ids, or of the query; page by page as they are asked. */
  async *customers(
    { agemin, fields, pageSize: limit, query, signal }: CustomerQuery = {}
  ): AsyncGenerator<Customer, void, void> {
    const first = withQuery("/customers", { agemin, query, return: fields?.join(","), limit })
    for await (const page of pagesOf(this.transport, first, { signal })) {
      yield* listOf(page, "customer").map(customerOf)
    }
  }

  /** Makes or replaces a customer (role `customers`). */
  async setCustomer(
    id: string,
    { age, ...texts }: Omit<Customer, "href" | "id">
  ): Promise<Customer> {
    const document = { ...defined(texts), ...age === undefined ? {} : { age: String(age) } }
    return customerOf((await put(this.transport, customerPath(id), document)).document)
  }

  removeCustomer(id: string): Promise<void> {
    return removeResource(this.transport, customerPath(id))
  }

  /** Makes a query; whoever knows `edit` can change and remove it. */
  async create(query: Query): Promise<{ readonly href: string; readonly edit: string }> {
    const { headers } = await this.transport.text({
      method: "POST",
      uri: "/queries",
      headers: { ...asJson, "idempotency-key": newKey() },
      body: JSON.stringify(documentOf(query))
    })
    return {
      href: headers.get("location") ?? unexpected("no Location"),
      edit: linkOf(headers.get("link"), "edit") ?? unexpected("no edit link")
    }
  }

  async replace(edit: string, query: Query): Promise<void> {
    const body = JSON.stringify(documentOf(query))
    await this.transport.text({ method: "PUT", uri: edit, headers: asJson, body })
  }

  remove(edit: string): Promise<void> {
    return removeResource(this.transport, edit)
  }
}
