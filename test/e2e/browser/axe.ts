/** Pages held against axe-core, at two widths and in both colour schemes. */
import axe from "axe-core"
import type { Tab } from "./browser.ts"

const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
/** All that a page in other colours could do wrong that it did not do before. */
const colourRules = ["color-contrast", "link-in-text-block"]

const run = async (tab: Tab, options: object): Promise<ReadonlyArray<string>> => {
  const quick = { resultTypes: ["violations"], preload: false }
  const script = `axe.run(document, ${JSON.stringify({ ...quick, ...options })})`
  // What axe.run resolves to, as its own types have it; it comes as JSON.
  const { passes, violations } = await tab.page.evaluate(script) as axe.AxeResults
  if (passes.length === 0) return ["axe has looked at nothing"]
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)
}

/** What axe leaves to validators: a label or an address that leads to two places. */
const repeatedIds = `(() => {
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id)
  return [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))]
})()`

const sizes = [{ width: 360, height: 740 }, { width: 1280, height: 800 }]

/** What is wrong with the page that is open: at each width all rules, then its other colours. */
export const faultsOf = async (tab: Tab): Promise<ReadonlyArray<string>> => {
  const { page } = tab
  const faults: Array<string> = []
  await page.evaluate(axe.source)
  const repeated = await page.evaluate(repeatedIds)
  if (String(repeated) !== "") faults.push(`has more than one ${String(repeated)}`)
  for (const viewport of sizes) {
    await page.setViewportSize(viewport)
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
      const options = colorScheme === "light"
        ? { runOnly: tags }
        : { runOnly: { type: "rule", values: colourRules } }
      const found = await run(tab, options)
      faults.push(...found.map((fault) => `${viewport.width} ${colorScheme} ${fault}`))
    }
    const overhang = await page.evaluate(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    if (overhang !== 0) faults.push(`${viewport.width} wider than the screen by ${overhang}`)
  }
  return faults
}
