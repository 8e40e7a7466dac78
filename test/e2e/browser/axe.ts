/** Pages held against axe-core, at two widths and in both color schemes. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Tab } from "./browser.ts"

const require = createRequire(import.meta.url)
/** The smaller build: it is read by the browser once for each page. */
const source = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8")

const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
/** All that a page in other colors could do wrong that it did not do before. */
const colorRules = ["color-contrast", "link-in-text-block"]

/** What depends on where things are, and on how large. */
const layoutRules = ["target-size", "scrollable-region-focusable", "meta-viewport"]

/** Only what is told of a fault is made out, and what is wrong leaves the page. */
const quick = { resultTypes: ["violations"], preload: false, selectors: false, iframes: false }

const run = async (tab: Tab, options: object): Promise<ReadonlyArray<string>> => {
  const script = `axe.run(document, ${JSON.stringify({ ...quick, ...options })})
    .then(({ passes, violations }) => passes.length === 0
      ? ["axe has looked at nothing"]
      : violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`
  // It is the array that the script ends with, as JSON.
  return await tab.page.evaluate(script) as ReadonlyArray<string>
}

/** What axe leaves to validators: a label or an address that leads to two places. */
const repeatedIds = `(() => {
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id)
  return [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))]
})()`

const narrow = { width: 360, height: 740 }
const wide = { width: 1280, height: 800 }

/** What only these rules look at may be otherwise in other colors, or where it is narrow. */
const only = (values: ReadonlyArray<string>) => ({ runOnly: { type: "rule", values } })

/** All rules where everything is shown; then what a narrow page, or a dark one, could do wrong. */
const looks = [
  { viewport: wide, colorScheme: "light", rules: { runOnly: tags } },
  { viewport: wide, colorScheme: "dark", rules: only(colorRules) },
  { viewport: narrow, colorScheme: "light", rules: only([...colorRules, ...layoutRules]) }
] as const

/** What is wrong with the page that is open, in each look. */
export const faultsOf = async (tab: Tab): Promise<ReadonlyArray<string>> => {
  const { page } = tab
  const faults: Array<string> = []
  await page.evaluate(`${source};undefined`)
  const repeated = await page.evaluate(repeatedIds)
  if (String(repeated) !== "") faults.push(`has more than one ${String(repeated)}`)
  for (const { colorScheme, rules, viewport } of looks) {
    await page.setViewportSize(viewport)
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
    const found = await run(tab, rules)
    faults.push(...found.map((fault) => `${viewport.width} ${colorScheme} ${fault}`))
    const overhang = await page.evaluate(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    if (overhang !== 0) faults.push(`${viewport.width} wider than the screen by ${overhang}`)
  }
  return faults
}
