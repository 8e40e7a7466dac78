/** `/cluster` of three processes on one NATS server: each of them shows all. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { childOf, childrenOf, type Element, parseText } from "../../../http/formats/xml/index.ts"
import { asAdmin } from "../../e2e/client.ts"
import { cleanUp, eventually, type Service, start } from "../../e2e/process.ts"
import { type NatsServer, startServer } from "./servers.ts"

/** A silent node is shown as silent within 10 s; its membership expires after 13 s. */
const shownWithinMs = 120_000

const names = ["one", "three", "two"]

let nats: NatsServer

let nodes: ReadonlyArray<Service>

beforeAll(async () => {
  nats = await startServer()
  const env = { NATS_URL: nats.url, CLUSTER_BUCKETS: "1", LOG_LEVEL: "info" }
  nodes = await Promise.all(names.map((name) => start({ env: { ...env, NODE_ID: name } })))
})

afterAll(async () => {
  cleanUp()
  await nats?.close()
})

const shownAt = async ({ url }: Service): Promise<Element> => {
  const answer = await fetch(`${url}/cluster`, { headers: asAdmin })
  const parsed = parseText(await answer.text())
  if (!parsed.ok) throw new Error(`/cluster answers ${answer.status}`)
  return parsed.value
}

const listOf = (cluster: Element, list: string, name: string) =>
  childrenOf(childOf(cluster, list) ?? cluster, name)

/** The attributes of each node. */
const nodesOf = (cluster: Element) =>
  listOf(cluster, "nodes", "node").map(({ attributes }) => attributes)

/** The number of shards of each node, and which they are. */
const ownersOf = (cluster: Element): ReadonlyArray<ReadonlyArray<string>> =>
  listOf(cluster, "owners", "owner").map(({ attributes, children }) => [
    attributes["node"] ?? "nobody",
    attributes["count"] ?? "",
    children.join("")
  ])

it("shows all three with their shards at each of them", async () => {
  const all = await eventually(shownWithinMs, "all are shown everywhere", async () => {
    const shown = await Promise.all(nodes.map(shownAt))
    const [first] = shown.map((one) => JSON.stringify(ownersOf(one)))
    const agreed = shown.every((one) =>
      JSON.stringify(ownersOf(one)) === first && ownersOf(one).length === names.length &&
      nodesOf(one).filter(({ answers }) => answers === "true").length === names.length
    )
    return agreed ? shown : undefined
  })
  for (const [at, cluster] of all.entries()) {
    expect(cluster.attributes).toMatchObject({ node: names[at], shards: "256", owned: "256" })
    expect(nodesOf(cluster).map(({ name, self }) => [name, self]))
      .toEqual(names.map((name) => [name, String(name === names[at])]))
    const owners = ownersOf(cluster)
    expect(owners.map(([node]) => node)).toEqual(names)
    expect(owners.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(256)
    for (const [, count] of owners) expect(Number(count)).toBeGreaterThan(40)
  }
})

it("shows which node does not answer", async () => {
  const [one, , two] = nodes
  if (one === undefined || two === undefined) throw new Error("a node is missing")
  two.child.kill("SIGSTOP")
  const silent = await eventually(shownWithinMs, "the stopped node is silent", async () => {
    const found = nodesOf(await shownAt(one)).find(({ name }) => name === "two")
    return found?.["answers"] === "false" ? found : undefined
  })
  expect(silent["since"]).toBeUndefined()
  const page = await fetch(`${one.url}/cluster`, { headers: { ...asAdmin, Accept: "text/html" } })
  expect(await page.text()).toContain("<b>1 not answering</b>")
  two.child.kill("SIGCONT")
  await eventually(shownWithinMs, "it is heard again", async () => {
    const found = nodesOf(await shownAt(one)).find(({ name }) => name === "two")
    return found?.["answers"] === "true" ? found : undefined
  })
})

/** The time line of a node in words, the oldest event first. */
const timeLineOf = async ({ url }: Service): Promise<ReadonlyArray<string>> => {
  const answer = await fetch(`${url}/cluster/history`, { headers: asAdmin })
  const parsed = parseText(await answer.text())
  if (!parsed.ok) throw new Error(`the history answers ${answer.status}`)
  return listOf(parsed.value, "events", "event").map(({ children }) => children.join(""))
}

it("tells in the time line and the log who was killed, and who took the shards", async () => {
  const [one, three, two] = nodes
  if (one === undefined || three === undefined || two === undefined) throw new Error("no node")
  const removed = "node two did not answer, and is no longer a member"
  const taken = /^node (one|three) took \d+ shards?( of node two)?$/
  const before = await Promise.all([one, three].map(timeLineOf))
  two.child.kill("SIGKILL")
  for (const [at, node] of [one, three].entries()) {
    const events = await eventually(shownWithinMs, "a survivor took its shards", async () => {
      const after = (await timeLineOf(node)).slice(before[at]?.length)
      return after.includes(removed) && after.some((text) => taken.test(text)) ? after : undefined
    })
    for (const text of events) await expect.poll(() => node.output).toContain(text)
  }
})
