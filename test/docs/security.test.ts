/** docs/security.md has every item of the checklist, and its tests exist under their titles. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { root, textOf } from "./pages.ts"

/** The rows of each subject, whatever the page says: none vanishes, and none is of no subject. */
const rowsOfSubject: Readonly<Record<string, ReadonlyArray<number>>> = {
  "outbound requests": [1, 2, 3, 4, 5, 6, 7, 8, 29, 48, 228, 230, 287],
  "parsing and bounds of requests": [9, 10, 11, 24, 299, 303, 304, 305, 294],
  "secrets and permissions": [
    ...[15, 16, 17, 18, 19, 20, 25, 30, 52],
    ...[219, 227, 245, 253, 266, 267, 289, 293, 295, 290, 306, 354]
  ],
  "scripts of strangers": [21, 22, 26, 27, 75, 229, 300, 296, 297, 328],
  "requests of other sites": [23, 28, 56, 187],
  "repetitions and copies": [31, 35, 49, 247, 265, 350],
  "disk use of strangers": [34, 40, 41, 42, 43, 46, 47, 172, 173, 221, 226, 232, 301, 288],
  amplification: [32, 36, 45, 223, 225, 231, 246, 254, 268, 292],
  "memory and slow clients": [
    ...[12, 33, 90, 91, 92, 93, 180, 186, 188],
    ...[189, 216, 217, 224, 234, 240, 241, 242, 243]
  ],
  "sign-in of browsers": [55, 57, 58, 59],
  tokens: [50, 51, 53, 76, 77, 184, 185, 220, 269, 359],
  "data at rest": [37, 60, 61, 62, 63, 64, 181],
  "NATS, proxies and metrics": [65, 66, 67, 68, 78, 81, 82],
  "rate limits and refusals": [13, 14, 74, 79, 83, 174, 222, 233, 285, 286, 291, 307, 308, 334],
  "audit log and moderation": [70, 71, 72, 73, 218, 248, 249, 302, 360],
  "the build, and security.txt": [69, 80, 182, 183],
  "removal and export of accounts": [170, 171],
  "the origin of content": [210, 211, 212],
  "contexts of the command line": [213, 214],
  "messages on pages": [215, 346],
  telemetry: [250, 251, 252]
}

const rows = textOf("docs/security.md").split("\n").filter((line) => /^\| +\d+ +\|/.test(line))
  .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()))

/** The tests that a row names, each with the file that it is in. */
const testsOf = (cell: string): ReadonlyArray<readonly [file: string, title: string]> =>
  cell.split("; ").flatMap((part) => {
    const [, file = "", titles = ""] = /^`(test\/[\w./-]+\.(?:test|long)\.ts)`: (.+)$/.exec(part) ??
      []
    return [...titles.matchAll(/“([^”]+)”/g)].map(([, title = ""]) => [file, title] as const)
  })

it("has every item once, in order", () => {
  expect(rows.map(([n]) => Number(n)))
    .toEqual(Object.values(rowsOfSubject).flat().sort((one, other) => one - other))
})

it("names a test of each that is there, by its own name", () => {
  for (const [n, what = "", cell = ""] of rows) {
    const tests = testsOf(cell)
    expect([n, what, tests.length]).toEqual([n, what, cell.match(/“/g)?.length])
    for (const [file, title] of tests) {
      const path = join(root, file)
      const text = existsSync(path) ? readFileSync(path, "utf8") : ""
      // The whole title, as the argument of `it`, `test` or `describe`, or of the call after a
      // table.
      const quoted = JSON.stringify(title).slice(1, -1)
      const isNamed = text.replaceAll(/\(\s+"/g, "(\"").includes(`("${quoted}"`)
      expect([n, file, title, isNamed]).toEqual([n, file, title, true])
    }
  }
})
