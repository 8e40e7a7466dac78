import { become, refuse } from "../../../../runtime/index.ts"
import { testTable } from "../../../../runtime/testing/index.ts"
import { concert } from "./tickets.ts"

/** Throws when a cell decides otherwise; returns the report of the cells. */
export const testConcert = (): string => {
  const tests = testTable(concert)
  tests.given({ _tag: "Open", sold: ["ann"] }).when({ _tag: "Buy", buyer: "ben" })
    .then(become({ _tag: "Open" as const, sold: ["ann", "ben"] }).reply(2))
  const all = Array.from({ length: 10 }, (_, at) => `buyer-${at}`)
  tests.given({ _tag: "Open", sold: all }).when({ _tag: "Buy", buyer: "zoe" })
    .then(refuse("SoldOut"))
  return tests.coverage().text // "concert: 1 of 2 cells", and which one is missing
}
