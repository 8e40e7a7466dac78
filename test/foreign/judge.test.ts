/** How the findings of the suites from outside count, and their table in the page. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { rewritten } from "./page.ts"
import { type ForeignSuite, judge } from "./suite.ts"
import { suites } from "./suites.ts"

const page = readFileSync(
  fileURLToPath(new URL("../../docs/interoperation.md", import.meta.url)),
  "utf8"
)

describe("judge", () => {
  const passed = { check: "GET /livez: status", isPassed: true }
  const failed = { check: "GET /a: allow", isPassed: false, detail: "Allow is missing" }
  const reason = { what: "no Allow", check: /^GET/, detail: /^Allow/, why: "It needs none." }

  it("counts each check once", () => {
    expect(judge([passed, passed, failed, { ...failed, detail: "b" }], { reasons: [] }))
      .toMatchObject({
        passed: 1,
        explained: 0,
        failed: ["GET /a: allow: Allow is missing"]
      })
  })

  it("explains a check only when each of its failures has a reason", () => {
    const suite = { reasons: [reason] }
    expect(judge([failed], suite)).toEqual({ passed: 0, explained: 1, failed: [], unmet: [] })
    expect(judge([failed, { ...failed, detail: "500" }], suite)).toMatchObject({
      explained: 0,
      failed: ["GET /a: allow: 500"]
    })
  })

  it("fails for a reason that explains nothing, unless the requests are random", () => {
    const unmet = ["no Allow: no failure has this reason: It needs none."]
    const reasons = [reason]
    expect(judge([passed], { reasons })).toMatchObject({ failed: unmet, unmet: [] })
    expect(judge([passed], { reasons, isRandom: true })).toMatchObject({ failed: [], unmet })
  })

  it("has no reason for GET alone, as HEAD is answered likewise", () => {
    const alone = suites.flatMap(({ reasons }) => reasons)
      .filter(({ check }) => /GET(?!\|HEAD\))/.test(check.source))
    expect(alone.map(({ what }) => what)).toEqual([])
  })

  it("fails without a finding", () => {
    expect(judge([], { reasons: [] }).failed).toEqual(["the suite checked nothing"])
  })
})

describe("the page", () => {
  it("shows the reasons that the suites have", () => {
    expect(rewritten(page, suites, [])).toBe(page)
  })

  it("shows what each suite checks", () => {
    const missing = suites.filter(({ checks }) => !page.includes(`| ${checks} `))
    expect(missing.map(({ name }) => name)).toEqual([])
  })

  it("keeps the rows of the suites that did not run", () => {
    const planted: ForeignSuite = {
      name: "planted",
      checks: "what was planted",
      source: { registry: "npm", name: "planted", version: "1.0.0" },
      reasons: [{ what: "a fault", check: /^a/, detail: /b/, why: "It is planted." }],
      run: async () => []
    }
    const verdict = { passed: 1, explained: 2, failed: ["c", "d", "e"], unmet: [] }
    const text = rewritten(page, [...suites, planted], [{ suite: planted, verdict }])
    expect(text).toMatch(/\| `planted` +\| planted 1\.0\.0 \(npm\) +\| .* \| 1 +\| 2 +\| 3 +\|/)
    expect(text).toContain("- `planted`: a fault. It is planted.")
    expect(rewritten(text, [...suites, planted], [])).toBe(text)
  })
})
