/**
 * Operations of clients on customers, which are records, by HTTP; and what must hold of their index
 * at the end. A listing reads every customer of a run.
 */
import { Effect } from "effect"
import { accountKind } from "../../actors/index.ts"
import { indexKey } from "../../http/query-engine/table-fields.ts"
import { customersTable } from "../../http/resources/customers/customer-table.ts"
import { address, shardOf } from "../../runtime/index.ts"
import type { RowInput, RowOutput, RowValue } from "../histories/models/row.ts"
import { firstOf } from "./contents.ts"
import type { Operations, Turn } from "./operations.ts"
import { customersCount } from "./plan.ts"
import type { Answer } from "./requests.ts"
import { shardsInUse } from "./shards.ts"
import { bearerOf, type WebAnswer, type WebRequest } from "./web.ts"
import type { World } from "./world.ts"

/** An account in a shard of the nodes, which may change customers. */
const clerk = firstOf("clerk", (name) => shardsInUse.has(shardOf(address(accountKind, name))))

const authorization = bearerOf(clerk)

/** The ages of customers; a listing leaves out those below the second. */
const ages = [20, 30, 40]
const agesMin = [0, 30]

/** Sends one request, and notes its answer for each of these customers. */
const send = async (
  { asking, name, records, trace }: Turn,
  node: number,
  request: WebRequest,
  resources: ReadonlyArray<string>,
  input: RowInput,
  outputOf: (resource: string, answer: WebAnswer) => RowOutput
): Promise<Answer<WebAnswer>> => {
  const start = records.moment()
  const answer = await asking.http(node, request)
  trace.note("client", () => {
    const result = answer._tag === "Answered"
      ? `${answer.reply.status} ${answer.reply.text}`
      : `${answer._tag} ${answer.why}`
    return `${name} ${request.method} ${request.path}?${request.query ?? ""}: ${result}`
  })
  // A request that is refused has changed nothing.
  const isRefused = answer._tag === "Answered" && answer.reply.status === 409
  const outcome = isRefused ? { _tag: "Failed", why: "409" } as const : answer
  for (const resource of resources) {
    const what = { client: name, resource, input }
    records.note<RowInput, RowOutput, WebAnswer>(
      records.customer,
      what,
      start,
      outcome,
      (reply) => outputOf(resource, reply)
    )
  }
  return answer
}

const idOf = (resource: string): string => resource.replace("/", "-")

const pathOf = (resource: string): string => `/customers/${idOf(resource)}`

/** The customer in the XML of a customer or of a listing. */
const rowIn = (text: string, resource: string): RowValue | undefined => {
  const fields = new RegExp(
    `${pathOf(resource)}"[^>]*><name>([^<]*)</name><age>(\\d+)</age></customer>`
  ).exec(text)
  return fields === null ? undefined : { name: fields[1] ?? "", number: Number(fields[2]) }
}

const single =
  ({ records: { wrong } }: Turn) => (resource: string, reply: WebAnswer): RowOutput => {
    const { status, text } = reply
    if (status === 404 || status === 410) return { _tag: "Gone" }
    const found = status === 200 ? rowIn(text, resource) : undefined
    if (found !== undefined) return { _tag: "Found", row: found }
    if (status !== 204) wrong.push(`${resource} is answered with ${status} ${text}`)
    return { _tag: "Done" }
  }

const everyCustomer = Array.from({ length: customersCount }, (_, at) => `customer/${at}`)

const list = (turn: Turn, node: number, least: number): Promise<Answer<WebAnswer>> =>
  send(
    turn,
    node,
    { method: "GET", path: "/customers", query: least === 0 ? "" : `agemin=${least}` },
    everyCustomer,
    { kind: "read" },
    (resource, { status, text }) => {
      const found = rowIn(text, resource)
      if (status !== 200) turn.records.wrong.push(`customers are answered with ${status}`)
      return found === undefined ? { _tag: "Unlisted", least } : { _tag: "Found", row: found }
    }
  )

export const customerVerbs: Operations = {
  put: async (turn, { choice, mark, nodes: [node = 0], resource }) => {
    const row = { name: `mark ${mark}`, number: ages[Math.floor(choice * ages.length)] ?? 0 }
    const body = `<customer><name>${row.name}</name><age>${row.number}</age></customer>`
    const headers = { ...authorization, "content-type": "application/xml" }
    const request = { method: "PUT", path: pathOf(resource), headers, body }
    await send(turn, node, request, [resource], { kind: "put", row }, (_, { status }) => {
      if (status === 200 || status === 201) return { _tag: "Done" }
      turn.records.wrong.push(`${resource} is put with ${status}`)
      return { _tag: "Gone" }
    })
  },
  remove: async (turn, { nodes: [node = 0], resource }) => {
    const request = { method: "DELETE", path: pathOf(resource), headers: authorization }
    await send(turn, node, request, [resource], { kind: "remove" }, single(turn))
  },
  read: async (turn, { nodes: [node = 0], resource }) => {
    const request = { method: "GET", path: pathOf(resource) }
    await send(turn, node, request, [resource], { kind: "read" }, single(turn))
  },
  list: async (turn, { choice, nodes: [node = 0] }) => {
    await list(turn, node, agesMin[Math.floor(choice * agesMin.length)] ?? 0)
  },
  "list everywhere": async (turn, { nodes }) => {
    for (const node of nodes) for (const least of agesMin) await list(turn, node, least)
  }
}

/** The index has an entry for each customer, and no other. */
export const customersHold = (world: World): void => {
  const { inner } = world.tables
  const { index, name, parse } = customersTable
  const rows = Effect.runSync(inner.range(name, { limit: Infinity }))
  const [keys = []] = Effect.runSync(inner.keys(index?.table ?? "", [{ limit: Infinity }]))
  const expected = rows.map(({ key, value }) => indexKey(Number(parse(value)["age"]), key)).sort()
  if (JSON.stringify(expected) !== JSON.stringify(keys)) {
    world.violate(`the index of customers has ${keys.join(", ")}, not ${expected.join(", ")}`)
  }
}
