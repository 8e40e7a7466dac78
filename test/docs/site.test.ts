/** The documentation that the service serves: docs/ and modules, each page, its text, its links. */
import { Effect } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { type DocsPage, type DocsSite, Documentation } from "../../http/documentation/index.ts"
import { documentationResource } from "../../http/resources/documentation/index.ts"
import { pages, proseOf, root, textOf } from "./pages.ts"

const modules = ["runtime", "actors", "http", "client", "deploy"].map((one) => `${one}/README.md`)

const own = pages.filter((page) => page.startsWith("docs/") || modules.includes(page))

/** Of one picture in base64: 60 kB. */
const pictureCharsMax = 80_000

let site: DocsSite

beforeAll(async () => {
  const read = async () => readFileSync(join(root, "dist/docs/site.json"), "utf8")
  const built = await Effect.runPromise(new Documentation(read).site)
  if (built === undefined) throw new Error("the build has no documentation")
  site = built
})

const pageOf = (file: string): DocsPage => {
  const found = site.pages.find((page) => page.file === file)
  if (found === undefined) throw new Error(`${file} is not in the site`)
  return found
}

/** Fences of code, code in a line, comments, anchors, targets of links, numbers of lists. */
const markup = new RegExp(
  [
    /^( *)```\S*\n([\s\S]*?)^\1```$/,
    /`([^`\n]+)`/,
    /<!--[\s\S]*?-->/,
    /<a id="[^"]+"><\/a>/,
    /\]\([^)\s]+\)/,
    /^ *\d+\. /
  ].map(({ source }) => source).join("|"),
  "gm"
)

/** A page as its reader sees it: without markup, but with its code. */
const plainOf = (file: string): string =>
  textOf(file).replace(
    markup,
    (_, _indent?: string, code?: string, inline?: string) => code ?? inline ?? ""
  )

const wordsOf = (text: string): ReadonlyArray<string> => text.match(/[\p{L}\p{N}]+/gu) ?? []

const addressOf = ({ path }: DocsPage): string => path === "" ? "/docs" : `/docs/${path}`

/** The tags of a page's markup, in which code is escaped. */
const tagsOf = ({ html }: DocsPage): ReadonlyArray<string> => html.match(/<[^>]+>/g) ?? []

describe("the site", () => {
  it("has every page of docs/ and of modules, the first one first, and no other", () => {
    expect(site.pages.map(({ file }) => file).toSorted()).toEqual(own.toSorted())
    expect(site.pages[0].file).toBe("docs/README.md")
    expect(site.pages.slice(1).filter(({ section }) => section === "")).toEqual([])
  })

  it("has a route for each page", () => {
    const { operations } = documentationResource(() => ({}))
    const unrouted = site.pages.filter(({ path }) =>
      path !== "" && !Object.hasOwn(operations, `GET /docs/${path.replace(/[^/]+$/, "{page}")}`)
    )
    expect(unrouted.map(({ file }) => file)).toEqual([])
  })
})

it("has every place that a page of the service leads to", () => {
  const sources = readdirSync(join(root, "http"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
  const hrefs = sources.flatMap((path) =>
    [...readFileSync(join(root, "http", path), "utf8").matchAll(/"(\/docs\/[a-z][^"{]*)"/g)]
      .map(([, href = ""]) => href)
  ).filter((href) => href !== "/docs/api" && !href.startsWith("/docs/pictures"))
  expect(hrefs.length).toBeGreaterThan(2)
  const dead = hrefs.filter((href) => {
    const [path, id] = href.split("#")
    const page = site.pages.find((one) => addressOf(one) === path)
    return page === undefined || id !== undefined && !page.headings.some((one) => one.id === id)
  })
  expect(dead).toEqual([])
})

it("has each picture that a page shows, and no other", () => {
  const shown = site.pages.flatMap((page) => tagsOf(page).filter((tag) => tag.startsWith("<img ")))
    .map((tag) => / src="\/docs\/pictures\/([^"]+)" alt="[^"]+"/.exec(tag)?.[1])
  expect([...new Set(shown)].toSorted()).toEqual(Object.keys(site.pictures))
  for (const [name, base64] of Object.entries(site.pictures)) {
    expect([name, base64.length < pictureCharsMax]).toEqual([name, true])
  }
})

describe.each(own)("%s", (file) => {
  it("has its headings", () => {
    const { headings, title } = pageOf(file)
    const written = [...proseOf(file).matchAll(/^(#{1,6}) (.*)$/gm)].map(([, marks = "", text]) => [
      marks.length,
      (text ?? "").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*]/g, "")
    ])
    expect([[1, title], ...headings.map(({ level, text }) => [level, text])]).toEqual(written)
  })

  it("has all its words, in their order", () => {
    const { parts } = pageOf(file)
    const shown = parts.flatMap(({ text, title }) => wordsOf(`${title}\n${text}`))
    expect(shown.join(" ")).toBe(wordsOf(plainOf(file)).join(" "))
  })

  it("has links only to places of the site, and to other servers", () => {
    const page = pageOf(file)
    const ids = new Map(
      site.pages.map((one) => [
        addressOf(one),
        new Set(tagsOf(one).flatMap((tag) => / id="([^"]+)"/.exec(tag)?.[1] ?? []))
      ])
    )
    const dead = tagsOf(page).flatMap((tag) => / href="([^"]*)"/.exec(tag)?.[1] ?? [])
      .filter((href) => {
        if (/^(?:https?:\/\/|mailto:)/.test(href)) return false
        const [path = "", id] = href.split("#")
        const target = ids.get(path === "" ? addressOf(page) : path)
        return target === undefined || id !== undefined && !target.has(id)
      })
    expect(dead).toEqual([])
  })

  it("has no script, no style and no form: the policy of pages allows none", () => {
    const active = /^<(?:script|style|link|iframe|object|form|input)\b| on\w+=| style=|javascript:/i
    expect(tagsOf(pageOf(file)).filter((tag) => active.test(tag))).toEqual([])
  })
})
