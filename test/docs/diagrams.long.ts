/** Diagrams of the pages: Mermaid, from npm, draws each, with its words, in a real browser. */
import { dirname, join } from "node:path"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { launchBrowser } from "../e2e/browser/browser.ts"
import { install } from "../foreign/install.ts"
import { blocksOf, pages } from "./pages.ts"

const installedWithinMs = 600_000

const diagrams = pages.flatMap(blocksOf).filter(({ language }) => language === "mermaid")

/** What the script of Mermaid adds to a page. */
interface Mermaid {
  readonly initialize: (options: { readonly startOnLoad: boolean }) => void
  readonly render: (id: string, text: string) => Promise<{ readonly svg: string }>
}

let browser: Browser
let script = ""

beforeAll(async () => {
  const source = { registry: "npm", name: "mermaid", version: "11.4.1" } as const
  const { pathOf } = await install(source)
  script = join(dirname(dirname(pathOf("any"))), "mermaid/dist/mermaid.min.js")
  browser = await launchBrowser()
}, installedWithinMs)
afterAll(() => browser.close())

/** The words of the drawn diagram; fails where Mermaid refuses the text. */
const drawn = async (text: string): Promise<string> => {
  const page = await browser.newPage()
  try {
    await page.addScriptTag({ path: script })
    const drawing = await page.evaluate(async (source) => {
      // The script defines it.
      const { mermaid } = globalThis as unknown as { readonly mermaid: Mermaid }
      mermaid.initialize({ startOnLoad: false })
      return (await mermaid.render("diagram", source)).svg
    }, text)
    await page.setContent(drawing.replace(/<style>[^]*?<\/style>/g, ""))
    return await page.locator("svg").textContent() ?? ""
  } finally {
    await page.close()
  }
}

/** The texts that a diagram shows: after a colon, in quotes, or in brackets. */
const textsOf = (source: string): ReadonlyArray<string> =>
  [...source.matchAll(/: (.+)$|\["([^"]+)"\]|-- "?([^"\n>]+?)"? -->| as (.+)$/gm)]
    .map(([, ...texts]) => texts.find((text) => text !== undefined) ?? "")

it.each(diagrams)("of $page:$line is drawn with its words", async ({ text }) => {
  const texts = textsOf(text)
  expect(texts.length).toBeGreaterThan(3)
  const words = await drawn(text)
  expect(texts.filter((one) => !words.includes(one))).toEqual([])
})

it("is refused where it is no diagram", async () => {
  await expect(drawn(`${diagrams[0]?.text ?? ""}\n  ->> nobody`)).rejects.toThrow(/Parse error/)
})
