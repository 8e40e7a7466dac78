#!/usr/bin/env node
/**
 * Renders `docs/` and the README.md of the modules for `/docs` of the service: `node
 * deploy/generate/docs.mjs` writes `dist/docs/site.json`, which `http/documentation/site.ts` reads.
 * The build fails for a link between pages that leads nowhere, for a page that `docs/README.md`
 * does not link to, and for HTML in a page.
 */
import hljs from "highlight.js/lib/common"
import http from "highlight.js/lib/languages/http"
import nginx from "highlight.js/lib/languages/nginx"
import { Marked } from "marked"
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname, posix } from "node:path"
import { docsFile, documentedModules, inRoot } from "../prepare.mjs"

hljs.registerLanguage("http", http)
hljs.registerLanguage("nginx", nginx)

const folder = "docs"
const indexFile = `${folder}/README.md`

const escapeHtml = (text) =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;")

/** The anchor of a heading, as other viewers of the pages make it from the same source. */
const slugOf = (source) =>
  source.toLowerCase().replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-")

/** The tokens inside a token, whatever it is. */
const childrenOf = (token) => [
  ...token.tokens ?? [],
  ...token.items ?? [],
  ...[token.header ?? [], ...token.rows ?? []].flat().flatMap((cell) => cell.tokens)
]

const allIn = (tokens) => tokens.flatMap((token) => [token, ...allIn(childrenOf(token))])

/** The text of tokens, for the search and for headings; a block ends with a line. */
const plainOf = (tokens) => tokens.map(plainOfOne).join("")

const plainOfOne = (token) => {
  switch (token.type) {
    case "html":
    case "hr":
    case "space":
    case "def":
      return ""
    case "br":
      return "\n"
    case "codespan":
      return token.text
    case "code":
      return `${token.text}\n`
    case "list":
      return `\n${token.items.map((item) => `${plainOf(item.tokens).trim()}\n`).join("")}`
    case "table":
      return [token.header, ...token.rows]
        .map((row) => `${row.map((cell) => plainOf(cell.tokens)).join(" | ")}\n`).join("")
    case "paragraph":
    case "blockquote":
    case "heading":
      return `${plainOf(token.tokens)}\n`
    default:
      return token.tokens === undefined ? token.text : plainOf(token.tokens)
  }
}

/** The pages that are not in the folder. */
const moduleFiles = documentedModules.map((module) => `${module}/README.md`)

/**
 * The pages of the runtime are beside those of the service, whose routes have no place below
 * `runtime/`: `runtime-tutorial`, `reference/runtime-effect`; `runtime` lists them.
 */
const besideService = (path) =>
  path.replace(/^runtime\/README$/, "runtime")
    .replace(/^runtime\/reference\/(?:runtime$|(?=.))/, (start) =>
      start.endsWith("/") ? "reference/runtime-" : "reference/runtime")
    .replace(/^runtime\//, "runtime-")

/** The path of a page after `/docs/`: `how-to/recipes`, `modules/http`; empty for the index. */
const pathOf = (file) => {
  if (file === indexFile) return ""
  return moduleFiles.includes(file)
    ? `modules/${posix.dirname(file)}`
    : besideService(file.slice(folder.length + 1).replace(/\.md$/, ""))
}

/** The address of a page of the service. */
const hrefOf = (path) => path === "" ? "/docs" : `/docs/${path}`

/** The headings of a page by their tokens, and every anchor in it. */
const anchorsOf = (file, tokens) => {
  const ids = new Map()
  const counts = new Map()
  for (const token of tokens.filter(({ type }) => type === "heading")) {
    const slug = slugOf(token.text)
    const count = counts.get(slug) ?? 0
    counts.set(slug, count + 1)
    ids.set(token, count === 0 ? slug : `${slug}-${count}`)
  }
  const own = allIn(tokens).filter(({ type }) => type === "html")
    .flatMap(({ text }) => [...text.matchAll(/<a id="([\w-]+)">/g)].map(([, id]) => id))
  const anchors = [...ids.values(), ...own]
  const repeated = anchors.find((id, at) => anchors.indexOf(id) < at)
  if (repeated !== undefined) throw new Error(`${file}: the anchor ${repeated} is there twice`)
  return { ids, anchors: new Set(anchors) }
}

/** A file of the folder with its tokens; its first heading is the title. */
const sourceOf = (file) => {
  const tokens = new Marked({ gfm: true }).lexer(readFileSync(inRoot(file), "utf8"))
  const at = tokens.findIndex(({ type }) => type === "heading")
  const first = tokens[at]
  if (first?.depth !== 1) throw new Error(`${file}: the page does not begin with its title`)
  const rest = tokens.slice(at + 1)
  return {
    file,
    path: pathOf(file),
    title: plainOf(first.tokens),
    titleAnchor: slugOf(first.text),
    tokens: rest,
    ...anchorsOf(file, [first, ...rest])
  }
}

/** The markup of a link of a page to another file, or to a place in a page. */
const linkTo = (page, byFile, href, text) => {
  if (/^[a-z][a-z0-9+.-]*:/i.test(href)) {
    if (!/^(https?|mailto):/i.test(href)) throw new Error(`${page.file}: a link to ${href}`)
    return `<a href="${escapeHtml(href)}">${text}</a>`
  }
  const [path, anchor] = href.split("#")
  const file = path === "" ? page.file : posix.join(posix.dirname(page.file), path)
    .replace(/\/$/, "")
  const target = byFile.get(file) ?? byFile.get(`${file}/README.md`)
  if (target === undefined) {
    if (file === folder || file.startsWith(`${folder}/`)) {
      throw new Error(`${page.file}: the link to ${href} leads nowhere`)
    }
    return `${text} <span class="source">(<code>${escapeHtml(file)}</code> in the sources)</span>`
  }
  if (anchor !== undefined && !target.anchors.has(anchor)) {
    throw new Error(`${page.file}: ${target.file} has no anchor ${anchor}`)
  }
  const place = anchor === undefined || anchor === target.titleAnchor ? "" : `#${anchor}`
  const whole = path === "" && place !== "" ? place : `${hrefOf(target.path)}${place}`
  return `<a href="${escapeHtml(whole)}">${text}</a>`
}

/** The language in which a block is highlighted; undefined for none. */
const languageOf = (lang, text) => {
  const isTranscript = lang === "sh" && /^\$ /m.test(text)
  const language = isTranscript ? "console" : lang
  return hljs.getLanguage(language) === undefined ? undefined : language
}

/**
 * The size of a WebP picture with or without transparency, in pixels (RFC 9649 §2.4 to §2.7), so
 * that the page does not move when the picture comes.
 */
const sizeOf = (bytes) => {
  const at = (offset) => bytes.readUInt16LE(offset) & 0x3fff
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8 ":
      return { width: at(26), height: at(28) }
    case "VP8X":
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
    default:
      throw new Error("only WebP pictures with losses are known here")
  }
}

/** A picture of a page, with where it is served. That of a phone has two pixels for each of CSS. */
const photoOf = (file, text) => {
  const { height, width } = sizeOf(readFileSync(inRoot(file)))
  const scale = file.endsWith("-phone.webp") ? 2 : 1
  const size = `width="${width / scale}" height="${height / scale}" loading="lazy"`
  const src = `/docs/pictures/${posix.basename(file)}`
  return `<img class="shot" src="${src}" alt="${escapeHtml(text)}" ${size}>`
}

/**
 * A picture as a part of its page: it then has the colors of the page, also those that the reader
 * chooses, and needs no style of its own, which the policy of pages would not allow. It scrolls on
 * a narrow page, where its text would be too small.
 */
const pictureOf = (page, href, text) => {
  const file = posix.join(posix.dirname(page.file), href)
  if (/^docs\/pictures\/[a-z-]+\.webp$/.test(file)) return photoOf(file, text)
  if (!/^docs\/pictures\/[a-z-]+\.svg$/.test(file)) {
    throw new Error(`${page.file}: ${href} is no picture of docs/pictures`)
  }
  const name = posix.basename(file, ".svg")
  const drawing = readFileSync(inRoot(file), "utf8").trim()
    .replace(/<style>[\s\S]*?<\/style>\s*/, "")
    .replace(/ id="([\w-]+)"/g, ` id="${name}-$1"`)
    .replace(/url\(#([\w-]+)\)/g, `url(#${name}-$1)`)
    .replace(
      / aria-labelledby="([^"]+)"/,
      (_, ids) => ` aria-labelledby="${ids.split(" ").map((id) => `${name}-${id}`).join(" ")}"`
    )
    .replace("<svg ", "<svg class=\"picture\" ")
  const frame = `class="drawing" role="region" aria-label="${escapeHtml(text)}" tabindex="0"`
  return `<span ${frame}>${drawing}</span>`
}

/** How each kind of token is written; `page` is the page that has it. */
const rendererOf = (page, byFile) => {
  let tables = 0
  let section = page.title
  return {
    heading(token) {
      section = plainOf(token.tokens)
      const id = page.ids.get(token)
      const text = this.parser.parseInline(token.tokens)
      return `<h${token.depth} id="${id}">${text}</h${token.depth}>\n`
    },
    code({ lang = "", text }) {
      const language = languageOf(lang, text)
      const markup = language === undefined
        ? escapeHtml(text)
        : hljs.highlight(text, { language, ignoreIllegals: true }).value
      return `<pre><code class="language-${escapeHtml(lang)}">${markup}\n</code></pre>\n`
    },
    html({ text }) {
      if (/^\s*<!--[\s\S]*-->\s*$/.test(text)) return ""
      const [, id] = /^<a id="([\w-]+)">$/.exec(text) ?? []
      if (id !== undefined) return `<span id="${id}">`
      if (text === "</a>") return "</span>"
      throw new Error(`${page.file}: a page of the service has no HTML such as ${text}`)
    },
    link({ href, tokens }) {
      return linkTo(page, byFile, href, this.parser.parseInline(tokens))
    },
    image({ href, text }) {
      return pictureOf(page, href, text)
    },
    table({ header, rows }) {
      tables += 1
      const cell = ({ align, tokens }, kind, scope = "") => {
        const num = align === "right" ? " class=\"num\"" : ""
        return `<${kind}${scope}${num}>${this.parser.parseInline(tokens)}</${kind}>`
      }
      const head = header.map((one) =>
        plainOf(one.tokens).trim() === "" ? cell(one, "td") : cell(one, "th", " scope=\"col\"")
      )
      const body = rows.map((row) => `<tr>${row.map((one) => cell(one, "td")).join("")}</tr>\n`)
      const label = escapeHtml(`Table ${tables}: ${section}`)
      return `<div class="scroll rows" role="region" aria-label="${label}" tabindex="0"><table>
<thead><tr>${head.join("")}</tr></thead>
<tbody>
${body.join("")}</tbody></table></div>
`
    }
  }
}

/** The text between two headings of a page, for the search and for programs. */
const partsOf = ({ ids, title, tokens }) => {
  const parts = [{ id: "", title, text: "" }]
  for (const token of tokens) {
    if (token.type === "heading") {
      parts.push({ id: ids.get(token), title: plainOf(token.tokens), text: "" })
    } else parts.at(-1).text += plainOfOne(token)
  }
  return parts.map((part) => ({ ...part, text: part.text.trim() }))
}

/** The pages in the order of the index, each with the heading of the index that lists it. */
const listed = (index, byFile) => {
  const order = new Map([[index.file, ""]])
  let section = ""
  for (const token of index.tokens) {
    if (token.type === "heading") section = plainOf(token.tokens)
    for (const { href } of allIn([token]).filter(({ type }) => type === "link")) {
      const file = posix.join(folder, href.split("#")[0])
      if (byFile.has(file) && !order.has(file)) order.set(file, section)
    }
  }
  const missing = [...byFile.keys()].find((file) => !order.has(file))
  if (missing !== undefined) throw new Error(`${index.file} does not link to ${missing}`)
  return order
}

/** The whole site. */
const makeSite = () => {
  const files = readdirSync(inRoot(folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md")).map((path) => posix.join(folder, path)).sort()
  const byFile = new Map([...files, ...moduleFiles].map((file) => [file, sourceOf(file)]))
  const order = listed(byFile.get(indexFile), byFile)
  const pages = [...order].map(([file, section]) => {
    const page = byFile.get(file)
    const marked = new Marked({ gfm: true, renderer: rendererOf(page, byFile) })
    return {
      path: page.path,
      file,
      title: page.title,
      section,
      headings: page.tokens.filter(({ type }) => type === "heading").map((token) => ({
        level: token.depth,
        id: page.ids.get(token),
        text: plainOf(token.tokens)
      })),
      parts: partsOf(page),
      html: marked.parser(page.tokens)
    }
  })
  const names = readdirSync(inRoot("docs/pictures")).filter((name) => name.endsWith(".webp")).sort()
  const base64Of = (name) => readFileSync(inRoot(`docs/pictures/${name}`)).toString("base64")
  return { pages, pictures: Object.fromEntries(names.map((name) => [name, base64Of(name)])) }
}

const written = inRoot(docsFile)
mkdirSync(dirname(written), { recursive: true })
// A service that starts meanwhile reads the whole old file, or the whole new one.
writeFileSync(`${written}.${process.pid}`, `${JSON.stringify(makeSite())}\n`)
renameSync(`${written}.${process.pid}`, written)
