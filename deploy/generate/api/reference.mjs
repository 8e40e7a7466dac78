#!/usr/bin/env node
/**
 * The API reference of the runtime: a page for each entry of its package, from the types and their
 * comments. `npm run api` writes the pages into `docs/runtime/reference`, and a test compares them.
 * `node deploy/generate/api/reference.mjs <folder>` writes them into another folder.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { isAbsolute, join } from "node:path"
import { inRoot } from "../../prepare.mjs"
import { exportsOf, idOf, readerOf, sorted, usedBy } from "./declarations.mjs"

const packageFolder = "runtime"
const pagesFolder = "docs/runtime/reference"

/** Of the formatted pages together, which are far smaller. */
const bytesMax = 64 * 1024 * 1024

/** `@restante/runtime/effect/nats`: `effect-nats.md`; the first entry is `runtime.md`. */
const fileOf = (entry) =>
  `${entry.replace(/^@restante\/(?=runtime$)|^@restante\/runtime\//, "").replaceAll("/", "-")}.md`

const localOf = ({ module, name }) => module.locals.get(name)

const sections = [
  ["Functions and values", ["FunctionDeclaration", "TSDeclareFunction", "VariableDeclaration"]],
  ["Classes", ["ClassDeclaration"]],
  ["Types", ["TSInterfaceDeclaration", "TSTypeAliasDeclaration"]]
]

const words = { ClassDeclaration: "class ", TSInterfaceDeclaration: "interface " }

/** As `interface Store`: no two headings of a page have the same anchor. */
const titleOf = (as, declaration) => {
  const { kind } = localOf(declaration)
  return `${words[kind] ?? (kind === "TSTypeAliasDeclaration" ? "type " : "")}${as}`
}

const anchorOf = (title) => title.toLowerCase().replaceAll(" ", "-").replace(/[^\w-]/g, "")

/** What a class of an error extends is a constant beside it, which has its fields. */
const baseOf = ({ module, name }) => module.locals.get(`${name}_base`)

/** A comment before the bar of a union: the formatter puts it elsewhere each time. */
const beforeBar = /\s*(\/\*\*(?:(?!\*\/)[\s\S])*\*\/)\s*\|\s*(?=\{)/g

const sourceOf = (declaration) => {
  const sources = [...baseOf(declaration)?.commented ?? [], ...localOf(declaration).commented]
  const isWhole = (text) => /^(?:declare|interface|type)\b/.test(text)
  return sources.map((text) => isWhole(text) ? text : `declare ${text}`)
    .join("\n").replaceAll("\t", "  ").replace(beforeBar, " | $1\n")
}

/** The text of a comment as Markdown: a line for each paragraph, and links to other names. */
const proseOf = (doc, linkOf) =>
  doc.replace(/\n(?![\n*-])/g, " ")
    .replace(/\{@link ([\w.]+)\}/g, (_, name) => linkOf(name) ?? `\`${name}\``)

const firstSentence = (prose) =>
  /^[\s\S]*?[.:](?=\s|$)/.exec(prose)?.[0].replace(/:$/, ".") ?? prose

const linkOfPlace = (page, { anchor, file }, text) =>
  `[\`${text}\`](${file === page ? "" : file}#${anchor})`

/** Where the declarations of all pages are, by their ids and by their names. */
class Places {
  reader
  byId = new Map()
  byName = new Map()

  constructor(reader) {
    this.reader = reader
  }

  add(as, declaration, file) {
    if (this.byId.has(idOf(declaration))) return false
    const place = { as, file, anchor: anchorOf(titleOf(as, declaration)) }
    this.byId.set(idOf(declaration), place)
    if (!this.byName.has(as)) this.byName.set(as, place)
    return true
  }

  /** The link to a name from a page; undefined for a name without a place. */
  linkFrom(page, name) {
    const [first] = name.split(".")
    const place = this.byName.get(first)
    return place === undefined ? undefined : linkOfPlace(page, place, name)
  }

  /** The links to what a declaration names. */
  usesOf(page, declaration) {
    const used = [declaration.name, `${declaration.name}_base`].flatMap((name) =>
      declaration.module.locals.get(name)?.names ?? []
    )
    const places = used.map((name) => this.reader.resolveLocal(declaration.module, name))
      .flatMap((found) => found === undefined ? [] : this.byId.get(idOf(found)) ?? [])
    return sorted(places.map((place) => linkOfPlace(page, place, place.as)))
  }
}

const itemText = ({ as, declaration }, page, places) => {
  const linkOf = (name) => places.linkFrom(page, name)
  const { doc } = localOf(declaration)
  const uses = places.usesOf(page, declaration)
  const see = uses.length === 0 ? "" : `It uses ${uses.join(", ")}.\n\n`
  const about = doc === undefined ? "" : `${proseOf(doc, linkOf)}\n\n`
  const code = `\`\`\`ts\n${sourceOf(declaration)}\n\`\`\`\n`
  return `### ${titleOf(as, declaration)}\n\n${about}${code}\n${see}`
}

const rowOf = ({ as, declaration }, linkOf) => {
  const { doc = "" } = localOf(declaration)
  const sentence = firstSentence(proseOf(doc, linkOf)).replaceAll("|", "\\|")
  return `| [\`${as}\`](#${anchorOf(titleOf(as, declaration))}) | ${sentence} |\n`
}

const tableOf = (items, linkOf) =>
  `| name | what |\n| --- | --- |\n${items.map((item) => rowOf(item, linkOf)).join("")}\n`

const isOfKinds = (kinds) => ({ declaration }) => kinds.includes(localOf(declaration).kind)

/** The text of a page. */
const pageText = ({ about = "", elsewhere, file, foreign, items, name, used }, places) => {
  const linkOf = (name) => places.linkFrom(file, name)
  const others = [
    ...foreign.map(({ as, package: from }) => `\`${as}\` of the package \`${from}\``),
    ...elsewhere.map(({ as }) => linkOf(as))
  ]
  const parts = sections.flatMap(([title, kinds]) => {
    const own = items.filter(isOfKinds(kinds))
    const texts = own.map((item) => itemText(item, file, places)).join("")
    return own.length === 0 ? [] : [`## ${title}\n\n${tableOf(own, linkOf)}${texts}`]
  })
  const unexported = used.length === 0
    ? ""
    : "## Types that these use\n\nNo entry exports them by name.\n\n" +
      `${tableOf(used, linkOf)}${used.map((item) => itemText(item, file, places)).join("")}`
  const also = others.length === 0 ? "" : `It also exports ${others.join(", ")}.\n\n`
  return `# ${name}\n\n${proseOf(about, linkOf)}\n\n${also}` +
    "`npm run api` writes this page from the types of the package and their comments: names, " +
    "signatures, and what each says.\n\n" +
    `${parts.join("")}${unexported}`
}

/** The pages by their files, not yet formatted. */
const pagesOf = (folder) => {
  const reader = readerOf(folder)
  const places = new Places(reader)
  const entries = exportsOf(folder, reader).map(({ exported, ...entry }) => {
    const file = fileOf(entry.name)
    const declared = exported.filter(({ declaration }) => declaration !== undefined)
    const items = declared.filter(({ as, declaration }) => places.add(as, declaration, file))
    return {
      ...entry,
      file,
      items,
      elsewhere: declared.filter((one) => !items.includes(one)),
      foreign: exported.filter(({ declaration }) => declaration === undefined)
    }
  })
  const isShown = ({ module, name }) => !name.endsWith("_base") || !module.locals.has(name)
  const pages = entries.map((entry) => {
    const known = new Set(places.byId.keys())
    const used = usedBy(reader, entry.items.map(({ declaration }) => declaration), known)
      .filter(isShown).map((declaration) => ({ as: declaration.name, declaration }))
    for (const { as, declaration } of used) places.add(as, declaration, entry.file)
    return { ...entry, used }
  })
  return new Map(pages.map((page) => [page.file, pageText(page, places)]))
}

/** The texts, formatted as all pages are: by one process, which takes long to start. */
const formatted = (texts) => {
  const bin = inRoot("node_modules/dprint/bin.cjs")
  const separator = "<!-- next page -->\n\n"
  const input = texts.join(separator)
  const options = { cwd: inRoot("."), input, encoding: "utf8", maxBuffer: bytesMax }
  const output = execFileSync(process.execPath, [bin, "fmt", "--stdin", "page.md"], options)
  return output.split(separator).map((text) => `${text.trimEnd()}\n`)
}

const [given] = process.argv.slice(2)
const folder = given !== undefined && isAbsolute(given) ? given : inRoot(given ?? pagesFolder)
const pages = pagesOf(inRoot(packageFolder))
const texts = formatted([...pages.values()])
mkdirSync(folder, { recursive: true })
for (const file of readdirSync(folder).filter((name) => !pages.has(name))) {
  rmSync(join(folder, file))
}
for (const [at, file] of [...pages.keys()].entries()) writeFileSync(join(folder, file), texts[at])
