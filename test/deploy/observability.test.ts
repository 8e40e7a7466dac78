/** The alerts and the dashboard use what the node measures, and the pages explain the alerts. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { HttpMetrics } from "../../http/pipeline/http-metrics.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { rowsOf } from "../docs/pages.ts"
import { asAdmin, send } from "../e2e/client.ts"
import { cleanUp, start } from "../e2e/process.ts"
import { alerts, dashboard, prometheusFolder, selectorsOf,
  testedAlerts } from "./observability-files.ts"
import { listAt, root, textOf, wordAt, yamlOf } from "./sources.ts"

/** The text of /metrics of a node. */
let measured = ""
/** The type of each metric. */
let types: ReadonlyMap<string, string> = new Map()

beforeAll(async () => {
  const service = await start()
  measured = (await send(service.url, "/metrics", { headers: asAdmin })).text
  types = new Map(
    [...measured.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, a = "", b = ""]) => [a, b])
  )
  await service.stop()
})
afterAll(cleanUp)

const { panels, uid, variables } = dashboard()
const shown = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
const selectors = [...alerts().map(({ expr }) => expr), ...shown].flatMap(selectorsOf)

/** The metric that a series belongs to: three series are of one histogram. */
const metricOf = (series: string): string => {
  const whole = series.replace(/_(bucket|sum|count)$/, "")
  return types.get(whole) === "histogram" ? whole : series
}

describe("the alerts and the dashboard", () => {
  it("use metrics that the node has", () => {
    expect(selectors.length).toBeGreaterThan(70)
    const unknown = selectors.map(({ name }) => name)
      .filter((name) => name !== "up" && !types.has(metricOf(name)))
    expect(unknown).toEqual([])
  })

  it("select labels that these metrics have, and values that occur", () => {
    const rows = rowsOf("docs/reference/metrics.md")
    const labelsOf = (metric: string): ReadonlyArray<string> =>
      (rows.find(([name]) => name === metric)?.[2] ?? "").match(/\w+/g) ?? []
    // The routes are only matched; no handler is called, and making one needs only these.
    const settings = { contentBytesMax: 1 }
    const service = { httpMetrics: new HttpMetrics(), settings } as Service
    const routes = new Set(resourceTable(service).map(({ pattern }) => pattern))
    const wrong = selectors.flatMap(({ matchers, name }) =>
      matchers.filter(({ label, value }) => {
        if (label === "job" || label === "instance") return !/^(restante|\$\w+)$/.test(value)
        if (!labelsOf(metricOf(name)).includes(label)) return true
        if (label === "route") return !routes.has(value)
        const values = label === "outcome" ? value.split("|") : []
        return !values.every((one) => measured.includes(`${label}="${one}"`))
      }).map(({ label, value }) => `${name}: ${label}="${value}"`)
    )
    expect(wrong).toEqual([])
  })
})

describe("the dashboard", () => {
  it("shows every metric of the node", () => {
    const used = new Set(shown.flatMap(selectorsOf).map(({ name }) => metricOf(name)))
    expect([...types.keys()].filter((name) => !used.has(name))).toEqual([])
  })

  it("has titles, units and texts, each panel in a place and by an id of its own", () => {
    expect(uid).toBe("restante")
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length)
    const graphs = panels.filter(({ type }) => type !== "row")
    for (const { description, targets, title, unit } of graphs) {
      expect([title, unit.length > 0, description.length > 5]).toEqual([title, true, true])
      expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length)
    }
    const cells = panels.flatMap(({ place }) =>
      Array.from({ length: Number(place["w"]) * Number(place["h"]) }, (_, n) => {
        const width = Number(place["w"])
        return `${Number(place["x"]) + n % width},${Number(place["y"]) + Math.floor(n / width)}`
      })
    )
    expect(new Set(cells).size).toBe(cells.length)
  })

  it("has a row for each part of the service", () => {
    expect(panels.filter(({ type }) => type === "row").map(({ title }) => title)).toEqual([
      "Requests and latency",
      "Deliveries and pushes",
      "Actors and queues",
      "Store",
      "Memory and disk",
      "Cluster"
    ])
  })

  it("reads the data source that its reader chooses, and only variables that it has", () => {
    const graphs = panels.filter(({ type }) => type !== "row")
    const sources = new Set(graphs.flatMap(({ dataSources }) => dataSources))
    expect([...sources]).toEqual(["${datasource}"])
    expect(variables.find(({ name }) => name === "datasource")?.type).toBe("datasource")
    const names = new Set(shown.flatMap((expr) => expr.match(/\$\w+/g) ?? []))
    const known = ["$__rate_interval", ...variables.map(({ name }) => `$${name}`)]
    expect([...names].filter((name) => !known.includes(name))).toEqual([])
  })
})

describe("the alerts", () => {
  it("say what happened, to what, what to do, and on which page more is", () => {
    const texts = /\{\{ \$labels\.(?:instance|job) \}\}[^]*\. What to do: \S.*\. See (docs\/\S+)\.$/
    const names = alerts().map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    for (const alert of alerts()) {
      expect(alert.summary.length, alert.name).toBeGreaterThan(20)
      expect(alert.for, alert.name).toMatch(/^[1-9]\d*[mh]$/)
      expect(["critical", "warning"], alert.name).toContain(alert.severity)
      const [, page = ""] = texts.exec(alert.description) ?? []
      expect([alert.name, page !== "" && existsSync(join(root, page))]).toEqual([alert.name, true])
    }
  })

  it("are all explained in docs/how-to/observe.md, with their severity and time", () => {
    const rows = rowsOf("docs/how-to/observe.md").filter(([name = ""]) =>
      name.startsWith("Restante")
    )
    expect(rows.map(([name, severity, time]) => [name, severity, time]))
      .toEqual(alerts().map((alert) => [alert.name, alert.severity, alert.for]))
    expect(rows.filter((row) => row.slice(3).some((text) => text.length < 15))).toEqual([])
  })

  it("each have a test for promtool, in which they are silent first and then fire once", () => {
    expect(testedAlerts()).toEqual(
      alerts().flatMap(({ name }) => [{ name, samples: 0 }, { name, samples: 1 }])
    )
  })
})

it("has an example of a scrape, of the job and the port that the other files have", () => {
  const [file] = yamlOf(`${prometheusFolder}/prometheus.yaml`)
  expect(wordAt(file, "scrape_configs", 0, "job_name")).toBe("restante")
  const [target] = listAt(file, "scrape_configs", 0, "static_configs", 0, "targets")
  const [, port] = String(target).split(":")
  expect(textOf("deploy/manifests/k8s/restante.yaml")).toContain(`containerPort: ${port} }`)
  for (const name of listAt(file, "rule_files")) {
    expect(existsSync(join(root, prometheusFolder, String(name))), String(name)).toBe(true)
  }
})
