/** Quotes, customers and queries. */
import { expect } from "vitest"
import { admin } from "../operation-requests.ts"
import { located, type OperationCalls } from "./calls.ts"

/** Quotes. */
export const askQuotes = async ({ asks, send }: OperationCalls): Promise<void> => {
  const price = { currency: "USD", text: "1.50" }
  const quote = {
    root: "quote",
    json: () => ({ price, name: "One" }),
    form: () => ({ price: "1.50", currency: "USD", name: "One" })
  }
  const named = (round: number) => `Q${round}`
  await asks("POST /quotes", {
    path: "/quotes",
    root: "quote",
    json: (round) => ({ symbol: named(round), price: "1.25" }),
    form: (round) => ({ symbol: named(round), price: "1.25" })
  })
  const key = "/quotes/{symbol}"
  await asks(`PUT ${key}`, {
    ...quote,
    path: (round) => `/quotes/${named(round)}`,
    besides: ["unknown"]
  })
  const path = "/quotes/GROSS"
  await send("PUT", path, { basic: admin, body: "<quote><price>1</price></quote>" })
  await asks(`PUT ${key}`, { ...quote, path, besides: ["unknown"] })
  await asks("GET /quotes", { path: "/quotes?limit=1000&return=price+name", basic: undefined })
  const one = { path: "/quotes?quotename=GROSS", basic: undefined }
  await asks("GET /quotes", { ...one, besides: ["limit"] })
  await asks(`GET ${key}`, { path, basic: undefined })
  await asks(`POST ${key}`, { ...quote, path })
  await asks(`DELETE ${key}`, { path })
}

/** Files of customers. */
const loads = async ({ asks, send, service }: OperationCalls): Promise<void> => {
  const rows = [{ id: "l1", name: "Ann", age: "30" }, { id: "l2", name: "Bob", age: "40" }]
  const file = {
    path: "/customers",
    root: "customers",
    json: () => ({ customer: rows }),
    bodies: {
      "text/csv": "id,name,age\nl1,Ann,30\nl2,Bob,40\n",
      "application/x-ndjson": rows.map((row) => `${JSON.stringify(row)}\n`).join("")
    }
  }
  const loaded = await asks("PUT /customers", file)
  const headers = { Prefer: "respond-async, handling=lenient" }
  await asks("PUT /customers", { ...file, headers })
  const spoiled = "id,name,age\nl3,,\n"
  const lenient = await send("PUT", "/customers", {
    basic: admin,
    type: "text/csv",
    body: spoiled,
    headers: { Prefer: "handling=lenient" }
  })
  expect(lenient.text).toContain("<problem row=\"1\">")
  const strict = await send("PUT", "/customers", {
    basic: admin,
    type: "text/csv",
    body: spoiled
  })
  expect(strict.status).toBe(422)
  await asks("GET /loads/{load}", { path: located(service, loaded), basic: undefined })
}

/** Queries as resources. */
const queries = async ({ asks, service }: OperationCalls): Promise<void> => {
  const where = [{ field: "age", op: "ge", value: "21" }, { field: "name", value: "Neo" }]
  const query = {
    root: "query",
    json: () => ({
      on: "customers",
      title: "Some",
      all: { where, not: { where: { field: "city", op: "contains", value: "x" } } },
      return: "name age",
      order: { by: "age", direction: "desc" },
      limit: "10"
    }),
    form: () => ({ on: "customers", match: "all", field1: "age", op1: "ge", value1: "21" })
  }
  const made = await asks("POST /queries", { path: "/queries", ...query })
  const last = made.at(-1)
  const path = located(service, made)
  const edit = /<([^>]*)>; rel="edit"/.exec(last?.header("link") ?? "")?.[1] ?? ""
  await asks("GET /queries", { path: "/queries?limit=1000" })
  await asks("GET /queries/{query}", { path, basic: undefined })
  const own = edit.replace(service.base, "")
  await asks("PUT /queries/{query}", { path: own, basic: undefined, ...query })
  await asks("POST /queries/{query}", { path, ...query })
  const found = `/customers?query=${encodeURIComponent(path)}`
  await asks("GET /customers", { path: found, basic: undefined })
  await asks("DELETE /queries/{query}", { path, isClosed: true })
}

/** Customers, files of them, and queries. */
export const askCustomers = async (calls: OperationCalls): Promise<void> => {
  const { asks, service } = calls
  const customer = {
    root: "customer",
    json: () => ({ name: "Neo", age: 37, city: "Zion" }),
    form: () => ({ name: "Neo", age: "37" })
  }
  await asks("POST /customers", { path: "/customers", ...customer })
  const made = await asks("PUT /customers/{customer}", {
    path: (round) => `/customers/c${round}`,
    ...customer,
    besides: ["unknown"]
  })
  const path = located(service, made)
  // Each is there by now.
  await asks("PUT /customers/{customer}", { path, ...customer, besides: ["unknown"] })
  await asks("GET /customers/{customer}", { path, basic: undefined })
  const all = "/customers?agemin=21&return=name+age&limit=1000"
  await asks("GET /customers", { path: all, basic: undefined })
  await asks("POST /customers/{customer}", { path, ...customer })
  await asks("DELETE /customers/{customer}", { path })
  await loads(calls)
  await queries(calls)
}
