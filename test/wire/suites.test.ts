/**
 * The cases of h1spec and of Http11Probe: each is a row of the table, and each answer that is not
 * what it asks for is listed with its reason.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import { cases } from "./cases/index.ts"
import { deviationsText, isAsAsked, unformatted, withDeviations } from "./deviations.ts"

const ids = cases.flatMap(({ asked = {} }) => Object.keys(asked))
const idsOf = (prefix: RegExp) => ids.filter((id) => prefix.test(id))

it("has each case of the suites once", () => {
  expect(ids.toSorted()).toEqual([...new Set(ids)].toSorted())
  expect(idsOf(/^h1spec: /)).toHaveLength(33)
  expect(idsOf(/^SMUG-/)).toHaveLength(87)
  expect(idsOf(/^MAL-/)).toHaveLength(26)
  expect(idsOf(/^(COMP|RFC\d+)-/)).toHaveLength(76)
  expect(idsOf(/^(COOK|NORM|CAP)-/)).toHaveLength(12 + 5 + 9)
  expect(ids).toHaveLength(33 + 87 + 26 + 76 + 26)
})

it("has a reason for each answer that is not what a suite asks, and for no other", () => {
  for (const row of cases) {
    const asked = Object.values(row.asked ?? {})
    const isOther = asked.some((one) => !isAsAsked(row, one))
    if (asked.length > 0) expect([row.name, row.reason !== undefined]).toEqual([row.name, isOther])
  }
})

it("docs/interoperation.md lists them", () => {
  const path = fileURLToPath(new URL("../../docs/interoperation.md", import.meta.url))
  const page = readFileSync(path, "utf8")
  const wanted = withDeviations(page, deviationsText(cases))
  if (process.env["WRITE_PAGES"] === "1") writeFileSync(path, wanted)
  expect(unformatted(page)).toBe(unformatted(wanted))
})
