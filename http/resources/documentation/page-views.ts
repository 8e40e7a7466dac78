/** The pages of the documentation: the first one, any other, and the places that a search finds. */
import type { DocsMatch, DocsPage, DocsSite } from "../../documentation/index.ts"
import { attribute, type Html, html, nothing, type PageLink, raw, renderDocsSearch,
  searchScriptPath } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element } from "../../formats/xml/index.ts"
import { docsMatchesMax } from "../../limits.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"

/** The path of a page. */
export const docsPath = (page = ""): string => page === "" ? "/docs" : `/docs/${page}`

/** The path of the API reference, or of a part of it. */
export const apiPath = (resource = ""): string =>
  resource === "" ? "/docs/api" : `/docs/api/${resource}`

const apiTitle = "API reference"

const entry = (href: string, title: string, path: string): Html =>
  html`<li><a href="${href}"${attribute("aria-current", href === path && "page")}>${title}</a></li>
`

/** All pages by the headings of the first one. */
const contents = ({ pages }: DocsSite, path: string): Html => {
  const [first, ...others] = pages
  const sections = [...new Set(others.map(({ section }) => section))]
  return html`<nav class="contents" aria-label="Documentation"><ul>
${entry(docsPath(first.path), first.title, path)}${entry(apiPath(), apiTitle, path)}</ul>
${
    sections.map((section) =>
      html`<p>${section}</p>
<ul>
${
        others.filter((page) => page.section === section)
          .map((page) => entry(docsPath(page.path), page.title, path))
      }</ul>
`
    )
  }</nav>
`
}

/** The headings of a page, as links to them. */
const onThisPage = (headings: DocsPage["headings"]): Html =>
  headings.length < 2 ? nothing : html`<details class="toc"><summary>On this page</summary>
<nav aria-label="On this page"><ul>
${
    headings.map(({ id, level, text }) =>
      html`<li${attribute("class", level > 2 && "inner")}><a href="#${id}">${text}</a></li>
`
    )
  }</ul></nav></details>
`

/** What a search has found. */
interface FoundPlaces {
  readonly query: string
  /** How many, in words. */
  readonly count: string
  readonly list: Html
}

/** A page with the search above it, and what that finds, and all pages beside it. */
export const docsBody = (
  site: DocsSite,
  path: string,
  content: Html,
  found?: FoundPlaces
): Html =>
  html`<div class="docs"><div>
${
    renderDocsSearch(found?.query ?? "", true)
  }<p class="quiet" id="found-count" role="status">${found?.count}</p>
<div id="found">${found?.list}</div>
${content}</div>
${contents(site, path)}</div>
`

/** The scripts of every page of the documentation. */
export const docsScripts = [searchScriptPath]

const neighbor = (rel: "next" | "prev", page: DocsPage | undefined): ReadonlyArray<PageLink> =>
  page === undefined ? [] : [{
    rel,
    href: docsPath(page.path),
    title: `${rel === "next" ? "Next" : "Previous"}: ${page.title}`
  }]

const linksOf = ({ pages }: DocsSite, page: DocsPage): ReadonlyArray<PageLink> => {
  const at = pages.indexOf(page)
  return [...neighbor("prev", pages[at - 1]), ...neighbor("next", pages[at + 1])]
}

const pageElement = (service: Service, { path, section, title }: DocsPage): Element =>
  element("page", {
    href: absoluteUri(service, docsPath(path)),
    title,
    section: section === "" ? undefined : section
  })

/** The build has made the markup of a page from Markdown of this program, which has no HTML. */
const markupOf = ({ headings, html: markup }: DocsPage): Html =>
  html`${onThisPage(headings)}<article>
${raw(markup)}</article>
` // see above

/** The first page, which lists all others. */
export const siteView = (service: Service, site: DocsSite): ResourceView => {
  const [first] = site.pages
  return {
    title: first.title,
    tree: () =>
      element(
        "documentation",
        { href: absoluteUri(service, docsPath()) },
        ...site.pages.map((page) => pageElement(service, page))
      ),
    links: linksOf(site, first),
    scripts: docsScripts,
    body: () => docsBody(site, docsPath(), markupOf(first))
  }
}

export const docsPageView = (service: Service, site: DocsSite, page: DocsPage): ResourceView => {
  const href = absoluteUri(service, docsPath(page.path))
  return {
    title: page.title,
    tree: () =>
      element(
        "document",
        { href, title: page.title, section: page.section, file: page.file },
        ...page.parts.map(({ id, text, title }) =>
          element("part", { href: id === "" ? href : `${href}#${id}`, title }, text)
        )
      ),
    links: linksOf(site, page),
    scripts: docsScripts,
    body: () => docsBody(site, docsPath(page.path), markupOf(page))
  }
}

const matchItem = ({ excerpt: [before, term, after], text }: DocsMatch): Html =>
  html`<li><p><a href="${text.href}">${text.title}</a></p>
<p class="preview">${before}${term !== "" && html`<mark>${term}</mark>`}${after}</p>
<p class="quiet">${text.page}</p></li>
`

const countText = (count: number): string => {
  if (count === 0) return "No page has all of these words. Try fewer or shorter ones."
  if (count >= docsMatchesMax) return `The first ${docsMatchesMax} places that have all words.`
  return count === 1 ? "1 place has all words." : `${count} places have all words.`
}

const matchList = (matches: ReadonlyArray<DocsMatch>): Html =>
  matches.length === 0 ? nothing : html`<ol class="entries">
${matches.map(matchItem)}</ol>
`

/** The places that a search has found. */
export const searchView = (
  service: Service,
  site: DocsSite,
  query: string,
  matches: ReadonlyArray<DocsMatch>
): ResourceView => ({
  title: "Search",
  tree: () =>
    element(
      "documentation",
      { href: absoluteUri(service, docsPath()), q: query },
      ...matches.map(({ excerpt, text: { href, page, title } }) =>
        element("match", { href: absoluteUri(service, href), title, page }, excerpt.join(""))
      )
    ),
  scripts: docsScripts,
  body: () =>
    docsBody(site, "", nothing, {
      query,
      count: countText(matches.length),
      list: matchList(matches)
    })
})
