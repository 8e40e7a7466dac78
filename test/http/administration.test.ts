/** `/admin`: what needs the operator's attention, for admins (protocol §6). */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { busiestShownMax, openReportsCountedMax } from "../../http/limits.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { DiskFloor } from "../../http/rates/disk-floor.ts"
import { alertsOf, alertTypes } from "../../http/resources/administration/alerts.ts"
import type { OperationFigures } from "../../http/resources/administration/operation-figures.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { SHARDS, StorageUnavailable } from "../../runtime/index.ts"
import { adminToken, type Harness, startService } from "./harness.ts"
import { quarantineMailbox } from "./quarantined-actor.ts"
import { eventually } from "./receiver.ts"

/** Nothing is wrong, at every bound below which something would be. */
const quiet: OperationFigures = {
  node: "a",
  version: "1",
  format: 2,
  cluster: {
    nodes: 3,
    silent: 0,
    versions: ["1"],
    shards: 256,
    owned: 256,
    quarantined: 0,
    deliveriesWaiting: 7,
    circuitsOpen: 0
  },
  reports: 0,
  anonymous: { bytes: 899, bytesMax: 1_000 },
  accounts: [],
  isConnected: true,
  disk: { freeBytes: 2_000, floorBytes: 1_000 },
  spentLimits: { address: 0, account: 0 },
  rateLimited: { address: 9, account: 9 },
  overQuota: { anonymous: 9, network: 9, account: 9 }
}

const inCluster = (part: Partial<OperationFigures["cluster"]>): Partial<OperationFigures> => ({
  cluster: { ...quiet.cluster, ...part }
})

const disk = (freeBytes: number): Partial<OperationFigures> => ({
  disk: { freeBytes, floorBytes: 1_000 }
})

const floorText = "below 1000 B (DISK_FREE_MIN) nothing is stored for clients without an account"

const cases: ReadonlyArray<
  readonly [type: string, figures: Partial<OperationFigures>, text: string]
> = [
  ["silent-nodes", inCluster({ silent: 1 }), "1 node does not answer"],
  ["silent-nodes", inCluster({ silent: 2 }), "2 nodes do not answer"],
  [
    "shards-without-owner",
    inCluster({ owned: 250 }),
    "6 of 256 shards have no owner: their actors do not answer"
  ],
  ["disconnected", { isConnected: false }, "this node has lost its connection to NATS"],
  ["store", { reports: undefined }, "this node could not read the reports in the store"],
  ["quarantines", inCluster({ quarantined: 2 }), "2 actors are in quarantine"],
  ["disk-full", disk(999), `999 B of the disk are free; ${floorText}`],
  ["disk-low", disk(1_000), `1000 B of the disk are free; ${floorText}`],
  ["disk-low", disk(1_999), `2.0 KiB of the disk are free; ${floorText}`],
  [
    "rate-limits",
    { spentLimits: { address: 1, account: 0 } },
    "1 network or account has spent the whole rate limit: the next requests are refused"
  ],
  [
    "rate-limits",
    { spentLimits: { address: 1, account: busiestShownMax } },
    `at least ${busiestShownMax + 1} networks and accounts have spent the whole rate limit: ` +
    "the next requests are refused"
  ],
  [
    "anonymous-quota",
    { anonymous: { bytes: 900, bytesMax: 1_000 } },
    "content of clients without an account takes 90 % of its quota (ANONYMOUS_BYTES_MAX)"
  ],
  ["circuits", inCluster({ circuitsOpen: 1 }), "1 circuit to another service is open"],
  ["reports", { reports: 1 }, "1 report is open"],
  [
    "reports",
    { reports: openReportsCountedMax },
    `at least ${openReportsCountedMax} reports are open`
  ],
  [
    "versions",
    inCluster({ versions: ["1", "2"] }),
    "the nodes run 2 versions; what nodes send to each other keeps to format 2 until all run " +
    "the newest"
  ]
]

describe("the alerts", () => {
  it.each(cases)("have %s where the figures call for it", (type, figures, text) => {
    const alerts = alertsOf({ ...quiet, ...figures })
    expect(alerts.map((one) => [one.type, one.text])).toEqual([[type, text]])
  })

  it("are none while all is well, and where something is not measured", () => {
    expect(alertsOf(quiet)).toEqual([])
    const unknown = { disk: undefined, anonymous: undefined, isConnected: undefined }
    expect(alertsOf({ ...quiet, ...unknown })).toEqual([])
  })

  it("have a case of each type here, and begin with the critical ones", () => {
    expect(new Set(cases.map(([type]) => type))).toEqual(new Set(alertTypes))
    const all = alertsOf({
      ...quiet,
      ...inCluster({ silent: 1, owned: 0, quarantined: 1, circuitsOpen: 1, versions: ["1", "2"] }),
      ...disk(0),
      spentLimits: { address: 1, account: 1 },
      isConnected: false,
      reports: 1
    })
    const severities = all.map(({ severity }) => severity)
    expect(severities).toEqual([...severities].sort())
    expect(new Set(severities)).toEqual(new Set(["critical", "warning"]))
  })
})

const basic = `admin:${adminToken}`

const space = { freeBytes: 500, totalBytes: 1_000 }

const diskFloor = new DiskFloor({ percent: 10 }, async () => ({ ...space }))

const setFree = async (freeBytes: number): Promise<void> => {
  space.freeBytes = freeBytes
  await Effect.runPromise(diskFloor.check)
}

/** Reads of the store by handlers, as table and limit; of rows, by `range`. */
const reads: Array<string> = []

let isStoreBroken = false

/** Counts what a handler reads of the store, and lets it fail. */
const spied = (one: Service): Service => {
  const { records, system, usage } = one
  const keys: Service["records"]["keys"] = (table, ranges) => {
    reads.push(...ranges.map(({ limit }) => `keys of ${table}, ${limit}`))
    return isStoreBroken
      ? Effect.fail(new StorageUnavailable({ detail: "broken by the test" }))
      : records.keys(table, ranges)
  }
  const range: Service["records"]["range"] = (table, rows) => {
    reads.push(`rows of ${table}`)
    return records.range(table, rows)
  }
  const scan: Service["system"]["scan"] = (...args) => {
    reads.push("actors")
    return system.scan(...args)
  }
  const recentLargestAccounts: Service["usage"]["recentLargestAccounts"] = (nowMs) =>
    isStoreBroken
      ? Effect.fail(new StorageUnavailable({ detail: "broken by the test" }))
      : usage.recentLargestAccounts(nowMs)
  return {
    ...one,
    records: { ...records, keys, range },
    system: { ...system, scan },
    usage: Object.create(usage, { recentLargestAccounts: { value: recentLargestAccounts } })
  }
}

let service: Harness
let alice: string

/** To one node, since each counts requests of its own. */
const send: Harness["send"] = (method, path, ...rest) =>
  service.send(method, `${service.nodes[0] ?? ""}${path}`, ...rest)

beforeAll(async () => {
  await setFree(500)
  service = await startService((shared) => resourceTable(spied(shared)), {
    diskFloor,
    trustedProxies: ["127.0.0.0/8"],
    rateLimits: { address: { quota: 3, windowMs: 3_600_000 } }
  })
  const body = "<account><name>alice</name></account>"
  alice = `alice:${(await send("POST", "/accounts", { basic, body })).child("token")}`
  const content = { basic: alice, body: "x".repeat(2_048), type: "text/plain" }
  expect((await send("POST", "/content", content)).status).toBe(202)
})
afterAll(() => service.close())

interface Listed {
  readonly type: string
  readonly severity: string
  readonly scope: string
  readonly href: string
  readonly text: string
}

interface Shown {
  readonly alerts?: { readonly alert: ReadonlyArray<Listed> }
  readonly nodes: { readonly silent: string }
  readonly reports?: { readonly count: string }
  readonly quota?: {
    readonly name: string
    readonly "max-bytes": string
    readonly clients?: { readonly client: ReadonlyArray<unknown> }
  }
  readonly "spent-limits": unknown
  readonly refusals: {
    readonly refusal: ReadonlyArray<{ readonly limit: string; readonly of: string }>
  }
}

/** The document, once every node has published its figures. */
const read = (): Promise<Shown> =>
  eventually("all nodes answer", async () => {
    const answer = await send("GET", "/admin", { basic, accept: "application/json" })
    expect([answer.status, answer.header("cache-control")]).toEqual([200, "no-store"])
    const shown = answer.json as Shown
    return shown.nodes.silent === "0" ? shown : undefined
  })

const alertOf = ({ alerts }: Shown, type: string): Listed | undefined =>
  alerts?.alert.find((one) => one.type === type)

const page = async (): Promise<string> =>
  (await send("GET", "/admin", { basic, accept: "text/html" })).text

describe("the operator's page", () => {
  it("shows the figures of the cluster and of the node that answers", async () => {
    const shown = await read()
    expect(shown).not.toHaveProperty("alerts")
    const [first] = service.services
    expect(shown).toMatchObject({
      href: `${service.base}/admin`,
      node: first?.system.cluster().self,
      version: "0.0.0-test",
      format: String(first?.system.format()),
      nodes: { count: String(service.services.length), silent: "0", versions: "1" },
      versions: { version: ["0.0.0-test"] },
      shards: { count: String(SHARDS), owned: String(SHARDS) },
      quarantines: { count: "0" },
      deliveries: { waiting: "0", "circuits-open": "0" },
      reports: { count: "0" },
      disk: { "free-bytes": "500", "floor-bytes": "100" },
      "spent-limits": { networks: "0", accounts: "0" }
    })
    const refused = shown.refusals.refusal
    expect(refused.map(({ limit, of }) => `${limit} ${of}`)).toEqual([
      "rate address",
      "rate account",
      "quota anonymous",
      "quota network",
      "quota account"
    ])
    expect(await page()).toContain("Nothing needs attention.")
  })

  it("leads to all pages for the role admin, and every page leads to it", async () => {
    const text = await page()
    const main = text.slice(text.indexOf("<main"), text.indexOf("</main>"))
    const paths = ["/accounts", "/limits", "/settings", "/audit", "/reports", "/blocks"]
    for (const path of [...paths, "/cluster", "/cluster/history"]) {
      expect(main).toContain(`<li><a href="${path}" rel="related">`)
      expect((await send("GET", path, { basic })).status).toBe(200)
    }
    const other = await send("GET", "/problems", { accept: "text/html" })
    expect(other.text).toContain("<a href=\"/admin\">Administration</a>")
  })

  it("is for admins alone", async () => {
    expect((await send("GET", "/admin")).status).toBe(401)
    expect((await send("GET", "/admin", { basic: alice })).status).toBe(403)
  })

  it("says that a network has spent its rate limit, but not which", async () => {
    const request = () => send("GET", "/problems", { headers: { "X-Forwarded-For": "192.0.2.7" } })
    for (let n = 0; n < 3; n++) expect((await request()).status).toBe(200)
    expect((await request()).status).toBe(429)
    const shown = await read()
    expect(alertOf(shown, "rate-limits")).toMatchObject({
      severity: "warning",
      scope: "node",
      href: `${service.base}/limits`
    })
    expect(shown["spent-limits"]).toEqual({ networks: "1", accounts: "0" })
    expect(shown.refusals.refusal[0]).toEqual({ limit: "rate", of: "address", count: "1" })
    const text = await page()
    expect(text).toContain("<a href=\"/limits\">1 network or account has spent")
    expect(text).not.toContain("192.0.2")
  })

  it("says that the disk is low or full, at this node", async () => {
    await setFree(150)
    expect(alertOf(await read(), "disk-low")).toMatchObject({ scope: "node", severity: "warning" })
    await setFree(50)
    const shown = await read()
    expect(alertOf(shown, "disk-low")).toBeUndefined()
    expect(alertOf(shown, "disk-full")).toMatchObject({ scope: "node", severity: "critical" })
    await setFree(500)
    expect(alertOf(await read(), "disk-full")).toBeUndefined()
  })

  it("counts open reports by reading some of their keys, and lists nothing else", async () => {
    const box = await send("POST", "/mailboxes", { basic, headers: { Slug: "reported" } })
    const body = "<notification><item><description>d</description><url>http://example.org/</url>" +
      "</item></notification>"
    expect(box.status).toBe(201)
    const uri = (await send("POST", "/mailboxes/reported", { basic, body })).header("location")
    const path = new URL(uri).pathname
    const reason = "<report><reason>spam</reason></report>"
    expect((await send("POST", `${path}/report`, { basic, body: reason })).status).toBe(202)
    const shown = await eventually("the report is counted", async () => {
      reads.length = 0
      const one = await read()
      return one.reports?.count === "1" ? one : undefined
    })
    expect(new Set(reads)).toEqual(new Set([`keys of reports, ${openReportsCountedMax}`]))
    expect(alertOf(shown, "reports")).toMatchObject({
      scope: "cluster",
      href: `${service.base}/reports`,
      text: "1 report is open"
    })
  })

  it("is there while the store fails, and says so", async () => {
    isStoreBroken = true
    try {
      const shown = await read()
      expect(shown).not.toHaveProperty("reports")
      expect(alertOf(shown, "store")).toMatchObject({ severity: "critical" })
      expect(shown).not.toHaveProperty("quota")
      expect(await page()).toContain("<p class=\"empty\">Not known. The store did not answer.</p>")
    } finally {
      isStoreBroken = false
    }
  })

  it("names the accounts that have stored most, and leads to their quota", async () => {
    const { quota } = await read()
    const { accountBytesMax } = service.services[0]?.usage.limits ?? {}
    expect(quota).toEqual({
      name: "account",
      "max-bytes": String(accountBytesMax),
      clients: {
        client: [
          { account: "alice", "used-bytes": "3072", href: `${service.base}/content?owner=alice` }
        ]
      }
    })
    const text = await page()
    expect(text).toContain("<a href=\"/content?owner=alice\">alice</a>")
    expect(text).toContain("<td class=\"num\">3.0 KiB</td>")
    const [, path = "", anchor = ""] = /<a href="(\/settings)#(ACCOUNT_\w+)">/.exec(text) ?? []
    expect(path).toBe("/settings")
    const settings = await send("GET", path, { basic, accept: "text/html" })
    expect([settings.status, settings.text.includes(`<tr id="${anchor}">`)]).toEqual([200, true])
  })

  it("says how many actors are in quarantine, and leads to their list", async () => {
    await send("POST", "/mailboxes", { basic, headers: { Slug: "broken" } })
    await quarantineMailbox(service, "broken")
    const alert = await eventually(
      "the quarantine is counted",
      async () => alertOf(await read(), "quarantines")
    )
    expect(alert).toEqual({
      type: "quarantines",
      severity: "critical",
      scope: "cluster",
      href: `${service.base}/cluster#quarantines`,
      text: "1 actor is in quarantine"
    })
    expect(await page()).toContain("<a href=\"/cluster#quarantines\">1 actor is in quarantine</a>")
  })

  it("says that more networks may have spent their rate limit than it counts", async () => {
    for (let n = 0; n < busiestShownMax; n++) {
      const headers = { "X-Forwarded-For": `203.0.${n}.1` }
      for (let used = 0; used < 3; used++) {
        expect((await send("GET", "/problems", { headers })).status).toBe(200)
      }
    }
    const shown = await read()
    const networks = String(busiestShownMax)
    expect(shown["spent-limits"]).toEqual({ networks, accounts: "0", more: "true" })
    expect(await page()).toContain(`${networks} or more networks, 0 accounts`)
  })
})
