/** The frame of every page: readable on a phone and without a script. */
import { icon, type IconName } from "./icon.ts"
import { iconPath } from "./scripts/index.ts"
import { type PageReader, renderReader } from "./sign-in.ts"
import { attribute, type Html, html, isLinkable, nothing } from "./template.ts"
import { typefacePath } from "./typeface.ts"

/** A link of a resource (RFC 8288). With a title it also shows in the page's navigation. */
export interface PageLink {
  readonly rel: string
  readonly href: string
  readonly type?: string | undefined
  readonly title?: string | undefined
}

/** The content of a page; `scripts` are the paths of scripts of this origin, in their order. */
export interface HtmlPage {
  readonly title: string
  readonly body: Html
  /** Shown after the links, so that the link to the next page is not below the forms. */
  readonly forms?: Html | undefined
  readonly links?: ReadonlyArray<PageLink>
  readonly scripts?: ReadonlyArray<string>
  /** The requested path, which the navigation highlights. */
  readonly path?: string | undefined
  /** Who reads the page, for its header. */
  readonly reader?: PageReader | undefined
}

const headLink = (item: PageLink): Html => {
  if (!isLinkable(item.href)) return nothing
  const { href, rel, title, type } = item
  return html`<link rel="${rel}" href="${href}"${attribute("type", type)}${
    attribute("title", title)
  }>
`
}

/** The links of a resource: a live part, since a growing list may get a next page. */
const navigation = (links: ReadonlyArray<PageLink>): Html => {
  const visible = links.filter((item) => item.title !== undefined && isLinkable(item.href))
  const list = html`<nav aria-label="Related"><ul>${
    visible.map((item) => html`<li><a href="${item.href}" rel="${item.rel}">${item.title}</a></li>`)
  }</ul></nav>
`
  return html`<div id="related" data-live>${visible.length > 0 && list}</div>
`
}

/** An entry of the navigation; paths under `others` belong to it as well. */
interface Entry {
  readonly path: string
  readonly name: string
  readonly others?: ReadonlyArray<string>
  readonly icon?: IconName
}

const sections: ReadonlyArray<Entry> = [
  { path: "/mailboxes", name: "Mailboxes", icon: "mailboxes" },
  { path: "/outgoing", name: "Outgoing", icon: "outgoing" },
  { path: "/content", name: "Content", icon: "content" },
  { path: "/cabinets", name: "Cabinets", icon: "cabinets" },
  { path: "/cross_bridge", name: "Bridge", others: ["/sessions", "/questions"], icon: "bridge" },
  { path: "/customers", name: "Customers", icon: "customers" },
  { path: "/quotes", name: "Quotes", icon: "quotes" },
  { path: "/queries", name: "Queries", icon: "queries" },
  { path: "/cluster", name: "Cluster", icon: "cluster" },
  { path: "/docs", name: "Docs", icon: "docs" }
]

const service: ReadonlyArray<Entry> = [
  { path: "/admin", name: "Administration" },
  { path: "/accounts", name: "Accounts" },
  { path: "/audit", name: "Audit log" },
  { path: "/reports", name: "Reports", others: ["/blocks"] },
  { path: "/problems", name: "Problems" },
  { path: "/openapi.json", name: "OpenAPI" }
]

/** `aria-current` of the link to `target` on the page of `path` (WAI-ARIA 1.2 §6.6). */
const current = (path: string | undefined, target: string, roots: ReadonlyArray<string>): Html => {
  const isInside = roots.some((one) => path === one || path?.startsWith(`${one}/`) === true)
  return attribute("aria-current", path === target ? "page" : isInside && "true")
}

const entries = (all: ReadonlyArray<Entry>, at: string | undefined): Html =>
  html`<ul>${
    all.map(({ icon: sign, name, others = [], path }) =>
      html`<li><a href="${path}"${current(at, path, [path, ...others])}>${
        sign !== undefined && icon(sign)
      }${name}</a></li>`
    )
  }</ul>`

/** A whole page as text. */
export const renderPage = (content: HtmlPage): string => {
  const links = content.links ?? []
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${content.title} · restante</title>
<link rel="preload" href="${typefacePath}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="/style.css">
<link rel="icon" href="/favicon.ico" type="image/svg+xml">
<link rel="apple-touch-icon" href="${iconPath}">
<link rel="manifest" href="/manifest.webmanifest">
${links.map(headLink)}${
    (content.scripts ?? []).map((path) =>
      html`<script src="${path}" defer></script>
`
    )
  }<script src="/page.js" async blocking="render"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><a class="brand" href="/"${current(content.path, "/", [])}>restante</a>${
    renderReader(content.reader, content.path)
  }<nav aria-label="Sections">${entries(sections, content.path)}</nav></header>
<main id="main" tabindex="-1">
<h1>${content.title}</h1>
${content.body}
${navigation(links)}${content.forms}</main>
<footer><nav aria-label="Service">${entries(service, content.path)}</nav>
<p>Every page is also XML, JSON and plain text, by <code>Accept</code> or
<code>?format=</code>.</p></footer>
</body>
</html>
`.text
}
