/** The alerts, their tests and the dashboard of deploy/manifests/prometheus. */
import { at, listAt, textOf, treeAt, wordAt, yamlOf } from "./sources.ts"

export const prometheusFolder = "deploy/manifests/prometheus"

/** One alert. */
export interface Alert {
  readonly name: string
  readonly expr: string
  readonly for: string
  readonly severity: string
  readonly summary: string
  readonly description: string
}

/** The alerts of alerts.yaml, in its order. */
export const alerts = (): ReadonlyArray<Alert> => {
  const [file] = yamlOf(`${prometheusFolder}/alerts.yaml`)
  return listAt(file, "groups").flatMap((group) => listAt(group, "rules")).map((rule) => ({
    name: wordAt(rule, "alert"),
    expr: wordAt(rule, "expr"),
    for: wordAt(rule, "for"),
    severity: wordAt(rule, "labels", "severity"),
    summary: wordAt(rule, "annotations", "summary"),
    description: wordAt(rule, "annotations", "description")
  }))
}

/** The expressions of alerts.test.yaml: that before an alert fires, and that while it does. */
export const testedAlerts = (): ReadonlyArray<{ name: string; samples: number }> => {
  const [file] = yamlOf(`${prometheusFolder}/alerts.test.yaml`)
  return listAt(file, "tests").filter((test) => at(test, "promql_expr_test") !== undefined)
    .flatMap((test) => listAt(test, "promql_expr_test"))
    .flatMap((test) => {
      const firing = /^ALERTS\{alertname="(\w+)", alertstate="firing"\}$/
      const [, name] = firing.exec(wordAt(test, "expr")) ?? []
      return name === undefined ? [] : [{ name, samples: listAt(test, "exp_samples").length }]
    })
}

/** One panel of the dashboard; a row has no expressions. */
export interface Panel {
  readonly id: unknown
  readonly type: string
  readonly title: string
  readonly description: string
  readonly unit: string
  readonly place: Readonly<Record<string, unknown>>
  readonly targets: ReadonlyArray<{ readonly expr: string; readonly refId: string }>
  readonly dataSources: ReadonlyArray<unknown>
}

const targetsOf = (panel: unknown): ReadonlyArray<unknown> =>
  at(panel, "targets") === undefined ? [] : listAt(panel, "targets")

const panelOf = (panel: unknown): Panel => {
  const targets = targetsOf(panel)
  return {
    id: at(panel, "id"),
    type: wordAt(panel, "type"),
    title: wordAt(panel, "title"),
    description: String(at(panel, "description") ?? ""),
    unit: String(at(panel, "fieldConfig", "defaults", "unit") ?? ""),
    place: treeAt(panel, "gridPos"),
    targets: targets.map((one) => ({ expr: wordAt(one, "expr"), refId: wordAt(one, "refId") })),
    dataSources: [panel, ...targets].map((one) => at(one, "datasource", "uid"))
  }
}

/** The dashboard: what it shows, and the queries that fill its variables, by name. */
export const dashboard = () => {
  const file: unknown = JSON.parse(textOf(`${prometheusFolder}/dashboard.json`))
  const variables = listAt(file, "templating", "list").map((one) => ({
    name: wordAt(one, "name"),
    type: wordAt(one, "type"),
    query: String(at(one, "definition") ?? "")
  }))
  return { uid: at(file, "uid"), variables, panels: listAt(file, "panels").map(panelOf) }
}

/** The metrics of an expression, with the text of their matchers. */
export const selectorsOf = (expr: string) =>
  [...expr.matchAll(/\b(restante_\w+|up)\b(?:\{((?:"[^"]*"|[^"}])*)\})?/g)]
    .map(([, name = "", matchers = ""]) => ({
      name,
      matchers: [...matchers.matchAll(/(\w+)\s*(?:=~|!=|!~|=)\s*"([^"]*)"/g)]
        .map(([, label = "", value = ""]) => ({ label, value }))
    }))
