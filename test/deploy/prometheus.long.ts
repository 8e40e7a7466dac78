/** A Prometheus with the project's alerts, which reads a real node under a load. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { stringify } from "yaml"
import { asAdmin, notification, send } from "../e2e/client.ts"
import { blocksOf } from "../docs/pages.ts"
import { cleanUp, eventually, Running, type Service, start,
  temporaryFolder } from "../e2e/process.ts"
import { freePorts } from "../runtime/nats/servers.ts"
import { alerts, dashboard, prometheusFolder, selectorsOf } from "./observability-files.ts"
import { boundedEnv, FullLoad, movedSeries, unmovedMetrics } from "./full-load.ts"
import { replaced } from "./servers.ts"
import { at, listAt, root, treeAt, yamlOf } from "./sources.ts"
import { run, toolOf } from "./tools.ts"

/** The panels that show nothing while the node is healthy; all others have data. */
const emptyWhenHealthy = ["Share of failed requests"]
/** The range of rates: long enough for two scrapes on a busy machine. */
const rateInterval = "2m"
/** The series of the node. */
const ofNode = "{__name__=~\"restante_.+\", __name__!~\".+_bucket\", job=\"restante\"}"
const countedLabels = ["outcome", "status", "policy", "quota", "kind"]
const dataWithinMs = 180_000

afterAll(cleanUp)

const prometheus = toolOf("prometheus")
const promtool = toolOf("promtool", "prometheus")
const fileIn = (name: string) => join(root, prometheusFolder, name)

describe("promtool", () => {
  const folder = temporaryFolder()
  const textOf = (name: string) => readFileSync(fileIn(name), "utf8")

  /** Runs the tests of the alerts with these rules. */
  const tested = (rules: string) => {
    writeFileSync(join(folder, "alerts.yaml"), rules)
    writeFileSync(join(folder, "alerts.test.yaml"), textOf("alerts.test.yaml"))
    return run(promtool, ["test", "rules", join(folder, "alerts.test.yaml")])
  }

  it("accepts the alerts, and the example of a scrape", () => {
    const { code, output } = run(promtool, ["check", "rules", fileIn("alerts.yaml")])
    expect([code, output]).toEqual([0, expect.stringContaining(`${alerts().length} rules found`)])
    const example = run(promtool, ["check", "config", fileIn("prometheus.yaml")])
    expect([example.code, example.output]).toEqual([0, expect.stringContaining("is valid")])
  })

  it("accepts both files by the commands of docs/how-to/observe.md", () => {
    const typed = blocksOf("docs/how-to/observe.md")
      .filter(({ mark }) => mark?.kind === "run by").map(({ text }) => text).join("")
    expect(typed).toContain("promtool test rules")
    const { code, output } = run("sh", ["-ec", `cd '${root}'\n${typed}`])
    expect([code, output]).toEqual([0, expect.stringMatching(/is valid[^]*SUCCESS/)])
  })

  it("finds that each alert fires when it should, and not for healthy nodes", () => {
    const { code, output } = tested(textOf("alerts.yaml"))
    expect([code, output]).toEqual([0, expect.stringContaining("SUCCESS")])
  })

  it.each([
    ["silent", { expr: "vector(0) > 1" }],
    ["too slow", { for: "24h" }],
    ["not only for the sick node", { expr: "vector(1)" }]
  ])("would find an alert that is %s", (_, change) => {
    const [file] = yamlOf(`${prometheusFolder}/alerts.yaml`)
    const groups = listAt(file, "groups").map((group) => ({
      ...treeAt(group),
      rules: listAt(group, "rules").map((rule) => ({ ...treeAt(rule), ...change }))
    }))
    const { code, output } = tested(stringify({ groups }))
    expect(code).toBe(1)
    const found = [...output.matchAll(/expr: "ALERTS\{alertname=\\"(\w+)\\"/g)].map(([, one]) =>
      one
    )
    expect(alerts().map(({ name }) => name).filter((name) => !found.includes(name))).toEqual([])
  })
})

describe("a Prometheus that reads a node", () => {
  let service: Service
  let server: Running
  let port = 0

  /** What an endpoint of the API of Prometheus answers. */
  const answerOf = async (path: string, parameters: Readonly<Record<string, string>> = {}) => {
    const search = new URLSearchParams(parameters)
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}?${search}`)
    const answer: unknown = await response.json()
    expect([parameters, at(answer, "status"), at(answer, "error")])
      .toEqual([parameters, "success", undefined])
    return answer
  }

  /** The values of a query now; those that are no number are left out. */
  const valuesOf = async (query: string): Promise<ReadonlyArray<number>> => {
    const answer = await answerOf("query", { query })
    return listAt(answer, "data", "result").map((one) => Number(at(one, "value", 1)))
      .filter((value) => !Number.isNaN(value))
  }

  /** The metrics of the node, and what was not 0 at some time: metrics, and series by a label. */
  const seriesOfNode = async () => {
    const answer = await answerOf("query", { query: `${ofNode}[10m]` })
    const namesOf = (series: unknown) => {
      const labels = treeAt(series, "metric")
      const name = String(labels["__name__"])
      const byLabel = countedLabels.filter((label) => labels[label] !== undefined)
        .map((label) => `${name}{${label}="${labels[label]}"}`)
      return [name.replace(/_(sum|count)$/, ""), ...byLabel]
    }
    const results = listAt(answer, "data", "result")
    const isMoved = (series: unknown) =>
      listAt(series, "values").some((sample) => Number(at(sample, 1)) > 0)
    return {
      all: new Set(results.flatMap((series) => namesOf(series).slice(0, 1))),
      moved: new Set(results.filter(isMoved).flatMap(namesOf))
    }
  }

  const filled = (text: string): string =>
    text.replaceAll("$__rate_interval", rateInterval).replaceAll("$instance", ".*")
      .replaceAll("$job", "restante")

  /** A few requests of each kind. */
  const load = async (): Promise<void> => {
    const xml = { "content-type": "application/xml" }
    for (let n = 0; n < 5; n++) {
      const deposit = { method: "POST", body: notification(`load-${n}`), headers: xml }
      expect((await send(service.url, "/mailboxes/load", deposit)).status).toBe(202)
    }
    const read = await send(service.url, "/mailboxes/load", { headers: asAdmin })
    expect(read.status).toBe(200)
    expect((await send(service.url, "/readyz")).status).toBe(200)
  }

  beforeAll(async () => {
    const [metrics = 0, web = 0] = await freePorts(2)
    port = web
    service = await start({ env: { ...boundedEnv, METRICS_LISTEN: `127.0.0.1:${metrics}` } })
    const made = { method: "POST", headers: { ...asAdmin, slug: "load" } }
    expect((await send(service.url, "/mailboxes", made)).status).toBe(201)
    const folder = temporaryFolder()
    let config = readFileSync(fileIn("prometheus.yaml"), "utf8")
    config = replaced(config, "127.0.0.1:9464", `127.0.0.1:${metrics}`)
    config = replaced(config, "[alerts.yaml]", `["${fileIn("alerts.yaml")}"]`)
    for (const name of ["scrape_interval", "evaluation_interval"]) {
      config = replaced(config, `${name}: 15s`, `${name}: 1s`)
    }
    writeFileSync(join(folder, "prometheus.yaml"), config)
    server = new Running(prometheus, [
      `--config.file=${join(folder, "prometheus.yaml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`
    ], {})
    await eventually(dataWithinMs, "Prometheus has read the node", async () => {
      if (server.isOver) throw new Error(server.output)
      const ready = await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => undefined)
      if (ready?.status !== 200) return undefined
      return (await valuesOf("up{job=\"restante\"} == 1")).length === 1 ? true : undefined
    })
  })

  afterAll(async () => {
    await server.stop()
    if (!service.isOver) await service.stop()
  })

  it("has data for each query of each panel, but for those that a healthy node lacks", async () => {
    const queries = dashboard().panels.flatMap(({ targets, title }) =>
      targets.map(({ expr }) => ({ title, query: filled(expr) }))
    )
    expect(queries.length).toBeGreaterThan(50)
    const expected = queries.filter(({ title }) => emptyWhenHealthy.includes(title))
    await eventually(dataWithinMs, "the panels have data", async () => {
      await load()
      const values = await Promise.all(queries.map(({ query }) => valuesOf(query)))
      const empty = queries.filter((_, n) => values[n]?.length === 0)
      return empty.length > expected.length ? undefined : empty
    }).then((empty) => expect(empty).toEqual(expected))
  })

  it("fills the variables of the dashboard", async () => {
    const queries = dashboard().variables.filter(({ query }) => query !== "")
    expect(queries.map(({ name }) => name)).toEqual(["job", "instance"])
    for (const { query } of queries) {
      const [, series = "", label = ""] = /^label_values\((.*), (\w+)\)$/.exec(filled(query)) ?? []
      const answer = await answerOf(`label/${label}/values`, { "match[]": series })
      expect([query, listAt(answer, "data").length]).toEqual([query, 1])
    }
  })

  it("evaluates each alert, and none fires for a healthy node", async () => {
    const names = alerts().map(({ name }) => name).toSorted()
    const rules = await eventually(dataWithinMs, "each alert is evaluated", async () => {
      const groups = listAt(await answerOf("rules"), "data", "groups")
      const all = groups.flatMap((group) => listAt(group, "rules"))
      return all.some((rule) => at(rule, "health") === "unknown") ? undefined : all
    })
    const states = rules.map((rule) => ["name", "health", "state"].map((name) => at(rule, name)))
    expect(states.toSorted()).toEqual(names.map((name) => [name, "ok", "inactive"]))
    for (const { expr, name } of alerts()) expect([name, await valuesOf(expr)]).toEqual([name, []])
  })

  it("shows a value in each panel, and moves each metric, under a load of each kind", async () => {
    // Relays, receipts and pages name the service as it names itself.
    const load = new FullLoad(`http://localhost:${service.port}`)
    await load.begin()
    const targets = dashboard().panels.flatMap(({ targets, title }) =>
      targets.filter(({ expr }) =>
        selectorsOf(expr).some(({ name }) => unmovedMetrics[name] === undefined)
      ).map(({ expr }) => ({ title, query: `max_over_time((${filled(expr)})[5m:1s]) > 0` }))
    )
    const panels = [...new Set(targets.map(({ title }) => title))]
    expect(panels.length).toBeGreaterThan(20)
    await expect.poll(async () => {
      await load.turn()
      const values = await Promise.all(targets.map(({ query }) => valuesOf(query)))
      const shown = targets.filter((_, n) => values[n]?.length !== 0).map(({ title }) => title)
      const { all, moved } = await seriesOfNode()
      const expected = [...all, ...movedSeries]
        .filter((series) => unmovedMetrics[series.replace(/\{.*/, "")] === undefined)
      return {
        panels: panels.filter((title) => !shown.includes(title)),
        metrics: expected.filter((series) => !moved.has(series))
      }
    }, { timeout: dataWithinMs, interval: 1_000 }).toEqual({ panels: [], metrics: [] })
    load.end()
    const { all } = await seriesOfNode()
    expect(Object.keys(unmovedMetrics).filter((name) => !all.has(name))).toEqual([])
  })

  it("notices that the node is gone", async () => {
    await service.stop()
    const query = "ALERTS{alertname=\"RestanteNodeDown\", severity=\"critical\"}"
    await eventually(
      dataWithinMs,
      "the alert is pending",
      async () => (await valuesOf(query)).length === 1 ? true : undefined
    )
    expect(await valuesOf("absent(up{job=\"restante\"})")).toEqual([])
  })
})
