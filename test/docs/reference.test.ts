/** The reference pages are complete and true: settings, metrics, problems of the built service. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { asAdmin, send } from "../e2e/client.ts"
import { cleanUp, command, publicUrl, type Service, start } from "../e2e/process.ts"
import { rowsOf, rowText } from "./pages.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(cleanUp)

const code = (text: string): string => `\`${text}\``
const none = "–"

/** Rows that a page lacks or has too many, ready to paste. */
const differences = (
  page: string,
  wanted: ReadonlyArray<ReadonlyArray<string>>,
  columns: number
) => {
  const text = (row: ReadonlyArray<string>) => rowText(row.slice(0, columns))
  const has = rowsOf(page).map(text)
  const needs = wanted.map((row) => text(row.map((cell) => cell.replace(/^`(.*)`$/, "$1"))))
  return {
    [`rows to add to ${page}`]: wanted.filter((_, at) => !has.includes(needs[at] ?? ""))
      .map(rowText),
    [`rows to remove from ${page}`]: has.filter((row) => !needs.includes(row))
  }
}

const nothing = (page: string) => ({
  [`rows to add to ${page}`]: [],
  [`rows to remove from ${page}`]: []
})

interface Shown {
  readonly name: string
  readonly value: string | null
  readonly source: string
  readonly env: string
  readonly flag: string | null
  readonly about: string
}

it("docs/reference/settings.md has every setting, its flag and its default", async () => {
  const page = "docs/reference/settings.md"
  const { code: exit, output } = await command(["config", "--json"])
  expect(exit).toBe(0)
  // The command's own JSON.
  const shown = JSON.parse(output) as ReadonlyArray<Shown>
  expect(shown.length).toBeGreaterThan(40)
  const wanted = shown.map(({ about, env, flag, name, source, value }) => [
    code(env),
    code(name),
    flag === null ? none : code(flag),
    source === "cluster.config.ts" && value !== null && value !== "" ? code(value) : none,
    about
  ])
  expect(differences(page, wanted, 4)).toEqual(nothing(page))
  expect(rowsOf(page).filter((row) => (row[4] ?? "").length < 10)).toEqual([])
})

/** Name, type and labels of each metric. */
const metricsOf = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const help = new Map(
    [...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, a = "", b = ""]) => [a, b])
  )
  return [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => {
    const series = new RegExp(`^${name}(?:_bucket|_sum|_count)?(?:\\{(.*)\\})? `, "gm")
    const labels = new Set(
      [...text.matchAll(series)].flatMap(([, inside = ""]) =>
        [...inside.matchAll(/(\w+)="/g)].map(([, label = ""]) => label)
      )
    )
    labels.delete("le")
    const shown = [...labels].map(code).join(", ")
    return [code(name), type, shown === "" ? none : shown, help.get(name) ?? ""]
  })
}

it("docs/reference/metrics.md has every metric, its type and its labels", async () => {
  const page = "docs/reference/metrics.md"
  await send(service.url, "/cross_bridge")
  const { text } = await send(service.url, "/metrics", { headers: asAdmin })
  const wanted = metricsOf(text)
  expect(wanted.length).toBeGreaterThan(25)
  expect(differences(page, wanted, 3)).toEqual(nothing(page))
  expect(rowsOf(page).filter((row) => (row[3] ?? "").length < 5)).toEqual([])
})

interface Listed {
  readonly "problem-type": ReadonlyArray<{ href: string; status: string; title: string }>
}

it("docs/reference/problems.md has every problem, in the service's own words", async () => {
  const page = "docs/reference/problems.md"
  const json = { accept: "application/json" }
  const listed = await send(service.url, "/problems", { headers: json })
  // The service's own list, as described in /openapi.json.
  const { "problem-type": types } = JSON.parse(listed.text) as Listed
  expect(types.length).toBeGreaterThan(20)
  const wanted = await Promise.all(types.map(async ({ href, status, title }) => {
    const path = href.slice(publicUrl.length)
    const { text } = await send(service.url, path, { headers: json })
    // As above.
    const { explanation } = JSON.parse(text) as { explanation: string }
    return [code(path.replace("/problems/", "")), status, title, explanation]
  }))
  expect(differences(page, wanted, 4)).toEqual(nothing(page))
})
