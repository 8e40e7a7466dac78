/** The inspector in a browser: accessible at every width, live, by keyboard, without a script. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type NodeWithInspector, startInspectedNode } from "../../../runtime/inspector/index.ts"
import { memory } from "../../../runtime/main.ts"
import { everyLookFaultsOf } from "../../e2e/browser/axe.ts"
import { launchBrowser, openTab } from "../../e2e/browser/browser.ts"
import { auction, fragile } from "./inspected-actors.ts"

let node: NodeWithInspector
let browser: Browser

const lamp = auction("lamp")
const bid = (amount: number, by = "ann") => node.ask(lamp, { _tag: "Bid", amount, by })
const urlOf = (path: string): string => new URL(path, node.inspectorUrl).href
const shown = (best: number) => new RegExp(`"best": ${best}\\b`)

beforeAll(async () => {
  const store = memory()
  // What an earlier process has stored is not recorded.
  const before = await startInspectedNode({ actors: [auction], store }, { port: 0 })
  await before.ask(auction("old"), { _tag: "Bid", amount: 1, by: "ann" })
  await before.ask(auction("old"), { _tag: "Bid", amount: 2, by: "ben" })
  await before.stop()
  node = await startInspectedNode({ actors: [auction, fragile], store }, { port: 0 })
  for (const amount of [5, 3, 7, 9]) await bid(amount)
  await bid(11, `someone with a name of ${"many letters ".repeat(20)}`)
  await bid(12)
  await node.ask(fragile("cup"), { _tag: "Touch" }).catch(() => undefined)
  browser = await launchBrowser()
})

afterAll(async () => {
  await browser?.close()
  await node?.stop()
})

const paths = [
  ["actors", "/"],
  ["kind", "/actors/auction"],
  ["messages", "/messages"],
  ["actor", "/actors/auction/lamp"],
  ["commit", "/actors/auction/lamp?commit=2"],
  ["item", "/actors/auction/old?item=1"],
  ["fault", "/actors/fragile/cup"]
] as const

it.each(paths)("is accessible at every width in both color schemes: %s", async (name, path) => {
  const tab = await openTab(browser)
  await tab.page.goto(urlOf(path))
  const faults = await everyLookFaultsOf(tab, (look) => tab.inspect(`runtime-${name}-${look}`))
  expect(faults).toEqual([])
  await tab.close()
})

it("shows what changes, unless it is paused", async () => {
  const tab = await openTab(browser)
  const { page } = tab
  await page.goto(urlOf("/actors/auction/lamp"))
  const state = page.getByRole("region", { name: "State" })
  await bid(20)
  await expect.poll(() => state.innerText()).toMatch(shown(20))
  await page.getByRole("button", { name: "Pause" }).click()
  await bid(30)
  const other = await openTab(browser)
  await other.page.goto(urlOf("/actors/auction/lamp"))
  expect(await other.page.getByRole("region", { name: "State" }).innerText()).toMatch(shown(30))
  // The script of the other page has read it again meanwhile, so this one would have, too.
  await bid(31)
  await expect.poll(() => other.page.getByRole("region", { name: "State" }).innerText())
    .toMatch(shown(31))
  expect(await state.innerText()).toMatch(shown(20))
  await page.getByRole("button", { name: "Pause" }).click()
  await expect.poll(() => state.innerText()).toMatch(shown(31))
  await other.close()
  await tab.close()
})

it("steps back and forward in time, by keyboard", async () => {
  const vase = auction("vase")
  for (const amount of [1, 2, 3]) await node.ask(vase, { _tag: "Bid", amount, by: "ann" })
  const tab = await openTab(browser)
  const { page } = tab
  await page.goto(urlOf("/actors/auction/vase"))
  const state = page.getByRole("region", { name: "State" })
  const items = page.getByRole("main").getByRole("link", { name: /^Item \d/ })
  expect([await state.innerText(), await items.count()]).toEqual([
    expect.stringMatching(shown(3)),
    3
  ])
  const expectStep = async (best: number, text: RegExp): Promise<void> => {
    await expect.poll(() => state.innerText()).toMatch(shown(best))
    expect(await page.getByRole("main").innerText()).toMatch(text)
    expect(await items.count()).toBe(best)
  }
  await page.keyboard.press("ArrowLeft")
  await expectStep(2, /After commit 2 of 3 recorded/)
  expect(await page.locator("mark").allInnerTexts()).toEqual([expect.stringMatching(shown(2))])
  await page.keyboard.press("ArrowLeft")
  await expectStep(1, /After commit 1 of 3 recorded/)
  await page.keyboard.press("ArrowLeft")
  await page.keyboard.press("ArrowRight")
  await expectStep(2, /After commit 2 of 3 recorded/)
  await page.getByRole("link", { name: "Now" }).click()
  await expectStep(3, /Now, in memory/)
  await tab.close()
})

it("works without its script", async () => {
  const tab = await openTab(browser, { script: false })
  const { page } = tab
  await page.goto(urlOf("/"))
  await page.getByRole("link", { name: "auction", exact: true }).click()
  await page.getByLabel("Id").fill("lamp")
  await page.getByRole("button", { name: "Open" }).click()
  expect(await tab.heading()).toBe("auction/lamp")
  await page.getByRole("link", { name: "← Back" }).click()
  expect(await page.getByRole("main").innerText()).toMatch(/After commit \d+ of \d+ recorded/)
  await tab.close()
})
