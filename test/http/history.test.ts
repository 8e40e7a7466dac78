/** The history of a node: samples, the time line, and `/cluster/history` (protocol §6). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf, type Element, writeElement } from "../../http/formats/xml/index.ts"
import { NodeHistory } from "../../http/history/node-history.ts"
import { quantileOf, type Reading, sampleOf } from "../../http/history/sample.ts"
import { type ClusterEvent, eventsBetween, type Observation } from "../../http/history/time-line.ts"
import { eventsMax, quarantineEventsKeptMax, quarantineEventsMax, sampleMs, samplesMax,
  shownEventsMax, viewSettlesMs } from "../../http/limits.ts"
import { HttpMetrics } from "../../http/pipeline/http-metrics.ts"
import { historyView } from "../../http/resources/cluster/history-views.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { address, type ClusterView } from "../../runtime/index.ts"
import { RuntimeMetrics } from "../../runtime/metrics.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

describe("a quantile", () => {
  const bounds = [10, 20, 50]
  it.each([
    ["of nothing", [0, 0, 0, 0], 0.5, undefined],
    ["in the first bucket", [4, 0, 0, 0], 0.5, 5],
    ["at the end of a bucket", [5, 5, 0, 0], 0.5, 10],
    ["within a later bucket", [5, 5, 10, 0], 0.75, 35],
    ["above the last bound", [1, 0, 0, 9], 0.99, 50]
  ])("%s", (_, counts, fraction, expected) => {
    expect(quantileOf({ bounds, counts }, fraction)).toBe(expected)
  })
})

describe("a sample", () => {
  const bounds = [1, 10]
  const reading = (part: Partial<Reading>): Reading => ({
    atMs: 0,
    monotonicMs: 0,
    requests: { bounds, counts: [0, 0, 0] },
    commits: 0,
    groups: { bounds, counts: [0, 0, 0] },
    attempts: 0,
    loop: { active: 0, idle: 0 },
    now: { queued: 0, timersDue: 0, deliveriesWaiting: 0, memoryBytes: 0 },
    ...part
  })

  it("has what was counted since the one before, for a second", () => {
    const before = reading({
      monotonicMs: 1_000,
      requests: { bounds, counts: [100, 0, 0] },
      commits: 7,
      attempts: 1,
      loop: { active: 100, idle: 900 }
    })
    const after = reading({
      atMs: 5,
      monotonicMs: 11_000,
      requests: { bounds, counts: [100, 20, 0] },
      commits: 107,
      groups: { bounds, counts: [10, 0, 0] },
      attempts: 6,
      loop: { active: 2_600, idle: 8_400 },
      now: { queued: 3, timersDue: 2, deliveriesWaiting: 1, memoryBytes: 9 }
    })
    expect(sampleOf(before, after)).toEqual({
      atMs: 5,
      requestsPerSecond: 2,
      requestP50Ms: 5.5,
      requestP99Ms: 9.91,
      commitsPerSecond: 10,
      commitP50Ms: 0.5,
      commitP99Ms: 0.99,
      attemptsPerSecond: 0.5,
      loopPercent: 25,
      queued: 3,
      timersDue: 2,
      deliveriesWaiting: 1,
      memoryBytes: 9
    })
  })

  it("has no quantile of nothing, also before the first request", () => {
    const none = { bounds: [], counts: [0] }
    const sample = sampleOf(
      reading({ requests: none }),
      reading({ monotonicMs: sampleMs, requests: none })
    )
    expect(sample).not.toHaveProperty("requestP50Ms")
    expect(sample).not.toHaveProperty("commitP99Ms")
    expect(sample.requestsPerSecond).toBe(0)
    const first = sampleOf(
      reading({ requests: none }),
      reading({ monotonicMs: sampleMs, requests: { bounds, counts: [10, 0, 0] } })
    )
    expect(first).toMatchObject({ requestsPerSecond: 1, requestP50Ms: 0.5 })
  })
})

const node = (name: string, rest: { incarnation?: string; leaving?: boolean } = {}) => ({
  node: name,
  incarnation: "1",
  leaving: false,
  ...rest
})

const seen = (
  cluster: Partial<ClusterView>,
  rest: Partial<Observation> = {}
): Observation => ({
  cluster: {
    self: "a",
    nodes: [node("a"), node("b")],
    owners: [],
    targets: [],
    lost: [],
    ...cluster
  },
  quarantined: [],
  isConnected: true,
  ...rest
})

const broken = { address: address("mailbox", "x"), reason: "a defect" }

describe("the time line", () => {
  it.each<[string, Observation, Observation, ReadonlyArray<ClusterEvent>]>([
    ["nothing new", seen({ owners: ["a"] }), seen({ owners: ["a"] }), []],
    ["a new node", seen({ nodes: [node("a")] }), seen({}), [{ type: "joined", node: "b" }]],
    [
      "a new process of a name",
      seen({}),
      seen({ nodes: [node("a"), node("b", { incarnation: "2" })] }),
      [{ type: "restarted", node: "b" }]
    ],
    [
      "a node that stops",
      seen({}),
      seen({ nodes: [node("a"), node("b", { leaving: true })] }),
      [{ type: "leaving", node: "b" }]
    ],
    [
      "a node that has stopped",
      seen({ nodes: [node("a"), node("b", { leaving: true })] }),
      seen({ nodes: [node("a")] }),
      [{ type: "left", node: "b" }]
    ],
    [
      "a node that does not answer",
      seen({}),
      seen({ nodes: [node("a")], lost: ["b"] }),
      [{ type: "removed", node: "b" }]
    ],
    [
      "a node that has stopped between two looks",
      seen({}),
      seen({ nodes: [node("a")] }),
      [{ type: "left", node: "b" }]
    ],
    [
      "a node that was killed while it stopped",
      seen({ nodes: [node("a"), node("b", { leaving: true })] }),
      seen({ nodes: [node("a")], lost: ["b"] }),
      [{ type: "removed", node: "b" }]
    ],
    [
      "shards that move, one event for each pair",
      seen({ owners: ["a", "a", "b", undefined] }),
      seen({ owners: ["b", "b", "a", "a"] }),
      [
        { type: "took", node: "b", from: "a", count: 2 },
        { type: "took", node: "a", from: "b", count: 1 },
        { type: "took", node: "a", from: undefined, count: 1 }
      ]
    ],
    [
      "shards without an owner",
      seen({ owners: ["b", "b", "a"] }),
      seen({ owners: [undefined, undefined, "a"] }),
      [{ type: "lost", node: "b", count: 2 }]
    ],
    [
      "a quarantine",
      seen({}),
      seen({}, { quarantined: [broken] }),
      [{ type: "quarantined", node: "a", actor: "mailbox/x", reason: "a defect" }]
    ],
    [
      "a quarantine that goes on",
      seen({}, { quarantined: [broken] }),
      seen({}, {
        quarantined: [broken]
      }),
      []
    ],
    [
      "some of many quarantines",
      seen({}),
      seen({}, {
        quarantined: Array.from({ length: 500 }, (_, at) => ({
          address: address("mailbox", `x${at}`),
          reason: "a defect"
        }))
      }),
      Array.from({ length: quarantineEventsMax }, (_, at): ClusterEvent => ({
        type: "quarantined",
        node: "a",
        actor: `mailbox/x${at}`,
        reason: "a defect"
      }))
    ],
    [
      "the end of a quarantine",
      seen({}, { quarantined: [broken] }),
      seen({}),
      [{ type: "lifted", node: "a", actor: "mailbox/x" }]
    ],
    [
      "a lost connection",
      seen({}),
      seen({}, { isConnected: false }),
      [{ type: "disconnected", node: "a" }]
    ],
    [
      "a connection again",
      seen({}, { isConnected: false }),
      seen({}),
      [{ type: "connected", node: "a" }]
    ]
  ])("has %s", (_, before, after, events) => {
    expect(eventsBetween(before, after)).toEqual(events)
  })
})

describe("a node's history", () => {
  let clockMs = 0
  let owner = "a"
  let nodes = [node("a"), node("b")]
  let isConnected = true
  let quarantined: Observation["quarantined"] = []
  const metrics = new RuntimeMetrics()
  const history = new NodeHistory({
    system: {
      cluster: () => seen({ nodes, owners: [owner] }).cluster,
      snapshot: () => ({
        activations: new Map(),
        timers: 0,
        timersDue: 0,
        timersInFlight: 0,
        earliestTimerMs: undefined,
        quarantined: quarantined.map((one) => ({ ...one, sinceMs: 0, untilMs: 1 })),
        metrics,
        traffic: { messages: 0, writes: 0, isConnected }
      })
    },
    httpMetrics: new HttpMetrics(),
    deliveries: {
      metrics: () => ({
        outcomes: {
          Delivered: 0,
          Fetched: 0,
          Probed: 0,
          PermanentFailure: 0,
          RetryableFailure: 0,
          Deferred: 0
        },
        inFlight: 0,
        waiting: 0,
        oldestWaitingMs: 0,
        circuitsOpen: 0,
        connections: 0,
        origins: 0
      })
    },
    nowMs: () => clockMs,
    monotonicMs: () => clockMs
  })

  it("has a sample for each interval, and keeps the last ones", () => {
    history.observe()
    clockMs += sampleMs - 1
    history.observe()
    expect(history.samples).toEqual([])
    for (let count = 0; count <= samplesMax; count++) {
      clockMs += sampleMs
      history.observe()
    }
    expect(history.samples.length).toBe(samplesMax)
    expect(history.samples.at(-1)?.atMs).toBe(clockMs)
    expect(history.samples[0]?.atMs).toBe(clockMs - (samplesMax - 1) * sampleMs)
  })

  it("keeps the last events, with the time of each", () => {
    for (let count = 0; count <= eventsMax; count++) {
      clockMs += 1
      owner = owner === "a" ? "b" : "a"
      history.observe()
    }
    expect(history.events.length).toBe(eventsMax)
    expect(history.events.at(-1)).toEqual({
      atMs: clockMs,
      type: "took",
      node: owner,
      from: owner === "a" ? "b" : "a",
      count: 1
    })
  })

  it("keeps the events of nodes when many actors break at once", () => {
    const before = history.events.length
    for (let look = 0; look < quarantineEventsKeptMax; look++) {
      quarantined = Array.from({ length: quarantineEventsMax }, (_, n) => ({
        address: address("mailbox", `${look}-${n}`),
        reason: "a defect"
      }))
      clockMs += 1_000
      history.observe()
    }
    quarantined = []
    history.observe()
    const ofQuarantines = history.events.filter(({ type }) =>
      type === "quarantined" || type === "lifted"
    )
    expect(ofQuarantines.length).toBe(quarantineEventsKeptMax)
    expect(history.events.length).toBe(before + quarantineEventsKeptMax)
    expect(history.events.at(-1)).toMatchObject({ type: "lifted", atMs: clockMs })
  })

  it("does not report as gone those that it cannot see while NATS is away", () => {
    const after = (): ReadonlyArray<string> => {
      clockMs += 1_000
      return history.observe().map(({ type, node: of }) => `${type} ${of}`)
    }
    isConnected = false
    expect(after()).toEqual(["disconnected a"])
    nodes = []
    expect(after()).toEqual([])
    isConnected = true
    expect(after()).toEqual(["connected a"])
    nodes = [node("a"), node("b")]
    clockMs += viewSettlesMs
    expect(after()).toEqual([])
    // What has really changed meanwhile is reported then.
    isConnected = false
    expect(after()).toEqual(["disconnected a"])
    isConnected = true
    nodes = [node("a")]
    expect(after()).toEqual(["connected a"])
    clockMs += viewSettlesMs
    expect(after()).toEqual(["left b"])
  })

  it("does not report as gone those that it cannot see when it does not see itself", () => {
    const after = (): ReadonlyArray<string> => {
      clockMs += 1_000
      return history.observe().map(({ type, node: of }) => `${type} ${of}`)
    }
    nodes = [node("a"), node("b")]
    expect(after()).toEqual(["joined b"])
    // The registry's server is connected, and does not answer.
    nodes = []
    expect(after()).toEqual([])
    nodes = [node("a")]
    expect(after()).toEqual([])
    nodes = [node("a"), node("b")]
    clockMs += viewSettlesMs
    expect(after()).toEqual([])
  })
})

describe("/cluster/history", () => {
  const basic = `admin:${adminToken}`
  let service: Harness
  beforeAll(async () => {
    service = await startService(resourceTable)
  })
  afterAll(() => service.close())

  const samplesOf = (history: Element): ReadonlyArray<Element> => {
    const samples = childOf(history, "samples")
    return samples === undefined ? [] : childrenOf(samples, "sample")
  }

  /** Lets each node observe, since nothing does by itself here. */
  const observe = (): void => {
    for (const { history } of service.services) history.observe()
  }

  it("is for admins only", async () => {
    expect((await service.send("GET", "/cluster/history")).status).toBe(401)
    const body = "<account><name>nobody</name></account>"
    const created = await service.send("POST", "/accounts", { basic, body })
    const nobody = `nobody:${created.child("token")}`
    expect((await service.send("GET", "/cluster/history", { basic: nobody })).status).toBe(403)
  })

  it("has what the answering node did, in every format, and a page with charts", async () => {
    // Each node has a history of its own.
    const path = `${service.nodes[0]}/cluster/history`
    const empty = await service.send("GET", path, { basic, accept: "text/html" })
    observe()
    await service.send("GET", "/quotes")
    observe()
    const { xml } = await service.send("GET", path, { basic })
    expect(service.services.map(({ system }) => system.cluster().self))
      .toContain(xml.attributes["node"])
    expect(xml.attributes["sample-seconds"]).toBe("10")
    const [sample] = samplesOf(xml)
    expect(Number(sample?.attributes["memory-bytes"])).toBeGreaterThan(1_000_000)
    expect(sample?.attributes["requests-per-second"]).toMatch(/^\d/)
    const answer = await service.send("GET", path, { basic, accept: "application/json" })
    const { samples } = JSON.parse(answer.text)
    expect(samples.sample.length).toBe(samplesOf(xml).length)
    expect(samples.sample[0]).toMatchObject({ at: sample?.attributes["at"] })
    const page = await service.send("GET", path, { basic, accept: "text/html" })
    expect(page.text).toContain("<b>Requests</b>")
    expect(page.text).toMatch(/aria-label="Memory: now \d+ MiB; at most \d+ MiB"/)
    expect(page.text).not.toContain("NaN")
    expect(empty.text).toContain("The first figures come 10 s after the start.")
    const cluster = await service.send("GET", "/cluster", { basic, accept: "text/html" })
    expect(cluster.text).toContain("href=\"/cluster/history\"")
  })
})

it("tells on the page what happened, the newest first, with foreign text as text", () => {
  const events = [
    { atMs: 1_000, type: "took", node: "a", from: "b", count: 1 } as const,
    {
      atMs: 2_000,
      type: "quarantined",
      node: "a",
      actor: "mailbox/<b>",
      reason: "<script>"
    } as const
  ]
  const { body, tree } = historyView({
    history: { samples: [], events },
    system: { cluster: () => seen({}).cluster }
  })
  const page = typeof body === "function" ? body().text : ""
  expect(page).toContain("the actor mailbox/&lt;b&gt; is in quarantine: &lt;script&gt;")
  expect(page).toContain("1970-01-01 00:00:01 UTC")
  expect(page.indexOf("in quarantine")).toBeLessThan(page.indexOf("took 1 shard of node b"))
  const document = typeof tree === "function" ? tree() : tree
  expect(document === undefined ? "" : writeElement(document)).toContain(
    "<event at=\"1970-01-01T00:00:01.000Z\" type=\"took\" node=\"a\" from=\"b\" count=\"1\">" +
      "node a took 1 shard of node b</event>"
  )
})

describe("the page of a long history", () => {
  const pageOf = (count: number): string => {
    const events = Array.from({ length: count }, (_, n) => ({
      ...{ atMs: n * 1_000, type: "took", node: "a", from: "b", count: n + 1 } as const
    }))
    const { body } = historyView({
      history: { samples: [], events },
      system: { cluster: () => seen({}).cluster }
    })
    return typeof body === "function" ? body().text : ""
  }

  it("says how many events there are, and leads to all of them", () => {
    const page = pageOf(shownEventsMax + 1)
    expect(page).toContain(`These are the newest ${shownEventsMax} of ${shownEventsMax + 1} events`)
    for (const format of ["xml", "json"]) {
      expect(page).toContain(`href="/cluster/history?format=${format}"`)
    }
    expect(page).not.toContain("took 1 shard ")
    expect(page).toContain("took 2 shards ")
  })

  it("says nothing of more where it shows all", () => {
    const page = pageOf(shownEventsMax)
    expect(page).toContain("took 1 shard ")
    expect(page).not.toContain("?format=")
  })
})
