/** `/cluster`: nodes, shards, actors, quarantines and their lifting (protocol §6). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf, type Element } from "../../http/formats/xml/index.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { makeMetricsText } from "../../http/resources/observability/prometheus-text.ts"
import { type Address, address, SHARDS } from "../../runtime/index.ts"
import { nodeOf, quarantineMailbox } from "./quarantined-actor.ts"
import { adminToken, type Harness, startService } from "./harness.ts"
import { eventually } from "./receiver.ts"

const admin = `admin:${adminToken}`
let service: Harness
let nobody: string

const send: Harness["send"] = (...request) => service.send(...request)

beforeAll(async () => {
  service = await startService(resourceTable)
  const body = "<account><name>nobody</name></account>"
  const created = await send("POST", "/accounts", { basic: admin, body })
  nobody = `nobody:${created.child("token")}`
})
afterAll(() => service.close())

const nodesOf = (cluster: Element): ReadonlyArray<Element> => {
  const nodes = childOf(cluster, "nodes")
  return nodes === undefined ? [] : childrenOf(nodes, "node")
}

const partOf = (node: Element | undefined, name: string): Element => {
  const part = node === undefined ? undefined : childOf(node, name)
  if (part === undefined) throw new Error(`no ${name}`)
  return part
}

/** The document, after every node has published its figures. */
const readCluster = (): Promise<Element> =>
  eventually("every node publishes its figures", async () => {
    const { xml } = await send("GET", "/cluster", { basic: admin })
    return nodesOf(xml).every(({ attributes }) => attributes["answers"] === "true")
      ? xml
      : undefined
  })

/** The shards of each node in a document. */
const ownersOf = (cluster: Element): ReadonlyArray<string> => {
  const owners: Array<string> = []
  for (const { attributes, children } of childrenOf(partOf(cluster, "owners"))) {
    for (const range of children.join("").split(" ").filter((text) => text !== "")) {
      const [from = "", to = from] = range.split("-")
      for (let at = Number(from); at <= Number(to); at++) owners[at] = attributes["node"] ?? ""
    }
  }
  return owners
}

const ownerOf = (of: Address): Service => nodeOf(service, of)

/** The storage engine of the nodes of each project. */
const engines: Readonly<Record<string, string>> = {
  memory: "memory",
  embedded: "RocksDB",
  leveldb: "LevelDB",
  nats: "JetStream",
  cluster: "JetStream"
}
const engine = engines[process.env["TEST_BACKEND"] ?? "memory"]

/** Opens a mailbox, and makes it fail until it is in quarantine. */
const broken = async (name: string): Promise<Address> => {
  const body = `<mailbox><name>${name}</name></mailbox>`
  expect((await send("POST", "/mailboxes", { basic: admin, body })).status).toBe(201)
  return quarantineMailbox(service, name)
}

describe("/cluster", () => {
  it("is for admins only", async () => {
    const paths = ["/cluster", "/cluster/quarantine/mailbox/x"]
    for (const path of paths) {
      for (const method of path === "/cluster" ? ["GET"] : ["GET", "POST", "DELETE"]) {
        const unknown = await send(method, path)
        expect([method, path, unknown.status]).toEqual([method, path, 401])
        expect(unknown.header("www-authenticate")).toContain("Basic")
        expect((await send(method, path, { basic: "admin:wrong" })).status).toBe(401)
        expect((await send(method, path, { basic: nobody })).status).toBe(403)
      }
    }
    expect((await send("OPTIONS", "/cluster")).header("allow")).toBe("GET, HEAD, OPTIONS")
  })

  it("shows every node and the owner of each shard", async () => {
    const xml = await readCluster()
    const views = service.services.map(({ system }) => system.cluster())
    const names = views.map(({ self }) => self)
    expect(xml.attributes).toMatchObject({ shards: String(SHARDS), owned: String(SHARDS) })
    expect(names).toContain(xml.attributes["node"])
    expect(nodesOf(xml).map(({ attributes }) => attributes["name"])).toEqual(names)
    expect(ownersOf(xml)).toEqual(views[0]?.owners)
    for (const { attributes } of nodesOf(xml)) {
      const isSelf = attributes["name"] === xml.attributes["node"]
      expect(attributes).toMatchObject({ self: String(isSelf), leaving: "false" })
      expect(attributes).toMatchObject({ version: "0.0.0-test", answers: "true", engine })
      expect(attributes["incarnation"]).not.toBe("")
      expect(Date.parse(attributes["since"] ?? "")).toBeLessThanOrEqual(Date.now())
    }
  })

  it("shows the actors of each kind, commits, timers and deliveries of each node", async () => {
    const body = "<mailbox><name>counted</name></mailbox>"
    expect((await send("POST", "/mailboxes", { basic: admin, body })).status).toBe(201)
    // A node may publish its figures between the activation of the mailbox and its first decision.
    await eventually("the mailbox and its decision are counted", async () => {
      const { xml } = await send("GET", "/cluster", { basic: admin })
      const kinds = nodesOf(xml).flatMap((node) => {
        const list = childOf(node, "kinds")
        return list === undefined ? [] : childrenOf(list, "kind")
      })
      const mailboxes = kinds.filter(({ attributes }) => attributes["name"] === "mailbox")
      const active = mailboxes.reduce((sum, one) => sum + Number(one.attributes["active"]), 0)
      const decides = mailboxes.some(({ attributes }) => Number(attributes["decisions"]) > 0)
      return active > 0 && decides ? true : undefined
    })
    const nodes = nodesOf(await readCluster())
    for (const node of nodes) {
      expect(Number(partOf(node, "timers").attributes["due"])).toBeGreaterThanOrEqual(0)
      expect(partOf(node, "deliveries").attributes).toMatchObject({ waiting: "0" })
    }
    // A node publishes its figures every few seconds: they may not include the commit yet.
    const written = await eventually("the commits are counted", async () => {
      const commits = nodesOf(await readCluster()).map((node) => partOf(node, "commits").attributes)
      return commits.find(({ groups }) => Number(groups) > 0)
    })
    expect(Number(written["p99-ms"])).toBeGreaterThanOrEqual(Number(written["p50-ms"]))
    expect(Number(written["group-size"])).toBeGreaterThan(0)
  })

  it("is served as JSON, plain text, and a page with a map of shards", async () => {
    await readCluster()
    const json = await send("GET", "/cluster", { basic: admin, accept: "application/json" })
    expect(json.header("cache-control")).toBe("no-store")
    expect(json.json).toMatchObject({
      shards: String(SHARDS),
      nodes: {
        node: service.services.map(() => ({ engine, kinds: { kind: expect.any(Array) } }))
      },
      owners: { owner: expect.any(Array) }
    })
    const text = await send("GET", "/cluster", { basic: admin, accept: "text/plain" })
    expect(text.text).toMatch(/^cluster:\n {2}node: \S+\n {2}shards: 256\n/)
    const page = await send("GET", "/cluster", { basic: admin, accept: "text/html" })
    const { self } = service.service.system.cluster()
    // A frame for each node, a cell for each shard, and no inline style, which the policy forbids.
    expect(page.text.match(/ role="img" aria-label="The shards of /g))
      .toHaveLength(service.services.length)
    expect(page.text.match(/ id="shard-\d+" title="Shard \d+/g)).toHaveLength(SHARDS)
    expect(page.text).not.toMatch(/ style=|<style/)
    expect(page.text).toContain(`${self}</th>`)
    expect(page.text).toContain(`<td>${engine}</td>`)
    // No line breaks between a number and its unit.
    expect(page.text).toMatch(/<\/time>, \d+\u00a0(?:s|min)\b/)
    expect(page.text).toContain("src=\"/live.js\"")
    const script = await send("GET", "/live.js")
    expect([script.status, script.header("content-type")])
      .toEqual([200, "text/javascript; charset=utf-8"])
    expect(() => new Function(script.text)).not.toThrow()
    const unchanged = await send("GET", "/live.js", { headers: { "If-None-Match": script.etag } })
    expect(unchanged.status).toBe(304)
  })

  it("is linked from the home page and the service document", async () => {
    const home = await send("GET", "/")
    const hrefs = childrenOf(home.xml, "link").map(({ attributes }) => attributes["href"])
    expect(hrefs).toContain(`${service.base}/cluster`)
    const page = await send("GET", "/", { accept: "text/html" })
    expect(page.text).toContain("href=\"/cluster\"")
  })
})

it("is measured, too", async () => {
  const metrics = makeMetricsText({
    ...service.service,
    nowMs: Date.now
  })
  const text = metrics()
  const { owners, self } = service.service.system.cluster()
  const owned = owners.filter((owner) => owner === self).length
  expect(text).toContain(`restante_cluster_members ${service.services.length}\n`)
  expect(text).toContain(`restante_shards_owned ${owned}\n`)
  expect(text).toMatch(/^restante_timers_due \d+$/m)
  expect(text).toMatch(/^restante_timers_in_flight \d+$/m)
  const [, count] = /^restante_commit_group_commits_count (\d+)$/m.exec(text) ?? []
  const [, groups] = /^restante_commit_groups_total (\d+)$/m.exec(text) ?? []
  expect([Number(count) > 0, count]).toEqual([true, groups])
})

describe("a quarantined actor", () => {
  const path = (of: Address): string => `/cluster/quarantine/${of.kind}/${of.id}`

  /** The figures of each node that answers. */
  const quarantinesOf = async (of: Address): Promise<ReadonlyArray<Element>> => {
    const all = await Promise.all(
      service.nodes.map((node) => send("GET", `${node}/cluster`, { basic: admin }))
    )
    return all.flatMap(({ xml }) =>
      nodesOf(xml).flatMap((node) => {
        const list = childOf(node, "quarantines")
        return list === undefined ? [] : childrenOf(list, "quarantine")
      }).filter(({ attributes }) => attributes["kind"] === of.kind && attributes["id"] === of.id)
    )
  }

  it("is shown with its reason, and lifted at any node", async () => {
    const sound = path(address("mailbox", "broken-one"))
    expect((await send("DELETE", sound, { basic: admin })).status).toBe(404)
    const of = await broken("broken-one")
    const refused = await send("GET", "/mailboxes/broken-one", { basic: admin })
    expect([refused.status, refused.header("retry-after")]).toEqual([503, "60"])
    const shown = await eventually("every node shows it", async () => {
      const all = await quarantinesOf(of)
      return all.length === service.nodes.length ? all[0] : undefined
    })
    expect(shown.attributes).toMatchObject({
      href: service.base + path(of),
      node: ownerOf(of).system.cluster().self,
      reason: expect.stringMatching(/^TypeError at \S+\.[jt]s:\d+$/)
    })
    const { since, until } = shown.attributes
    expect(Date.parse(until ?? "") - Date.parse(since ?? "")).toBe(600_000)
    const own = await send("GET", path(of), { basic: admin })
    expect([own.status, own.xml.name]).toEqual([200, "quarantine"])
    const page = await send("GET", "/cluster", { basic: admin, accept: "text/html" })
    expect(page.text).toContain(`action="${path(of)}"`)
    // Any node can lift it: a node that does not own the actor, if there is one.
    const at = Math.max(0, service.services.findIndex((one) => one !== ownerOf(of)))
    const lifted = await send("DELETE", `${service.nodes[at]}${path(of)}`, { basic: admin })
    expect(lifted.status).toBe(204)
    expect((await send("DELETE", path(of), { basic: admin })).status).toBe(404)
    expect((await send("GET", "/mailboxes/broken-one", { basic: admin })).status).toBe(200)
    await eventually(
      "no node shows it",
      async () => (await quarantinesOf(of)).length === 0 ? true : undefined
    )
    expect((await send("GET", path(of), { basic: admin })).status).toBe(404)
  })

  it("is lifted by the form of the page, and no other actor by it", async () => {
    const [one, other] = [await broken("form-one"), await broken("form-two")]
    const type = "application/x-www-form-urlencoded"
    const form = { basic: admin, body: "", type, accept: "text/html" }
    const lifted = await send("POST", path(one), form)
    expect([lifted.status, lifted.header("location")]).toEqual([303, `${service.base}/cluster`])
    expect((await send("GET", "/mailboxes/form-one", { basic: admin })).status).toBe(200)
    expect((await send("GET", "/mailboxes/form-two", { basic: admin })).status).toBe(503)
    expect((await send("POST", path(other), { basic: admin })).status).toBe(204)
    expect((await send("GET", "/mailboxes/form-two", { basic: admin })).status).toBe(200)
  })

  it("404 for an invalid actor", async () => {
    for (const tail of ["nothing/x", "mailbox/a.b", "mailbox/x~y", "__proto__/x"]) {
      const gone = await send("DELETE", `/cluster/quarantine/${tail}`, { basic: admin })
      expect([tail, gone.status]).toEqual([tail, 404])
    }
  })
})
