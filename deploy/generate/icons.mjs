#!/usr/bin/env node
/**
 * Makes `http/formats/html/packages/lucide.ts`, the icons of the pages: `node
 * deploy/generate/icons.mjs`. They are those of a package that the pages use. The file is in the
 * sources, so that a build needs no package of icons, and `test/deploy/icons.test.ts` makes it
 * again and compares.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { licenseLines } from "./source-texts.mjs"

const require = createRequire(import.meta.url)

/** The package that the icons are from. */
const folder = dirname(require.resolve("lucide-static/package.json"))

/** The made file. */
const iconsFile = new URL("../../http/formats/html/packages/lucide.ts", import.meta.url)

/** What an icon stands for in the pages, and its name in the package. */
const icons = {
  bridge: "construction",
  cabinets: "archive",
  cluster: "network",
  content: "file-text",
  copy: "copy",
  customers: "users",
  dark: "moon",
  docs: "book-open",
  light: "sun",
  mailboxes: "inbox",
  outgoing: "send",
  queries: "list-filter",
  quotes: "trending-up",
  remove: "trash-2",
  search: "search",
  "sign-in": "log-in",
  "sign-out": "log-out"
}

/** The shapes within an icon, on one line. */
const shapesOf = (name) => {
  const svg = readFileSync(join(folder, "icons", `${name}.svg`), "utf8")
  const shapes = /<svg[^>]*>(.*)<\/svg>/s.exec(svg)?.[1]
  if (shapes === undefined) throw new Error(`${name}.svg is no icon: look into the package`)
  return shapes.trim().replaceAll(/\s*\/>\s*/g, "/>")
}

/** Characters of a text in a line of the made file. */
const iconColumns = 70

const linesOf = (text) => text.match(new RegExp(`.{1,${iconColumns}}`, "g")) ?? []

const entry = ([name, source]) =>
  `  ${/^\w+$/.test(name) ? name : JSON.stringify(name)}: [\n${
    linesOf(shapesOf(source)).map((line) => `    ${JSON.stringify(line)}`).join(",\n")
  }\n  ].join("")`

/** The source of the file. */
export const makeIcons = () => {
  const read = (file) => readFileSync(join(folder, file), "utf8")
  const { name, version } = JSON.parse(read("package.json"))
  return `/**
 * Icons of Lucide, of ${name} ${version}, as \`deploy/generate/icons.mjs\` makes them.
 * License: ISC and MIT, in {@link iconsLicense}.
 */

/** The shapes of each icon on a grid of 24 by 24: strokes without fill. */
export const iconShapes = {
${Object.entries(icons).map(entry).join(",\n")}
} as const

/** The license of the icons, which goes with every copy of them. */
export const iconsLicense = [
${licenseLines(read("LICENSE"))}  ""
].join("\\n")
`
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  writeFileSync(iconsFile, makeIcons())
}
