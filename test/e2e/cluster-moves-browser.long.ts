/**
 * `/cluster` in a browser while nodes of one NATS server come and die, and NATS itself goes and
 * comes back: the map and the time line change in the open pages.
 */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type NatsServer, startServer } from "../runtime/nats/servers.ts"
import { launchBrowser, openTab, type Tab } from "./browser/browser.ts"
import { cleanUp, type Service, start } from "./process.ts"

/** A silent node is out of the cluster within half a minute on a quiet machine. */
const withinMs = 240_000

let nats: NatsServer
let browser: Browser
let one: Service
let map: Tab
let line: Tab

const startNode = (name: string): Promise<Service> =>
  start({ env: { NATS_URL: nats.url, CLUSTER_BUCKETS: "1", NODE_ID: name, BASE_URL: "" } })

/** Opens a page, and marks it: a page that is loaded again has no mark. */
const openMarked = async (path: string): Promise<Tab> => {
  const tab = await openTab(browser, { admin: true, at: "desk" })
  tab.page.setDefaultTimeout(withinMs)
  await tab.page.goto(`http://localhost:${one.port}${path}`)
  await tab.page.getByText("This page changes by itself.").waitFor()
  await tab.page.evaluate("document.body.dataset.mark = 'open'")
  return tab
}

const isMarked = (tab: Tab): Promise<unknown> => tab.page.evaluate("document.body.dataset.mark")

const frameOf = (node: string) => map.page.getByRole("img", { name: `The shards of ${node}` })

/** The owner of each shard on the map, by the names of their frames. */
const ownersShown = async (): Promise<Readonly<Record<string, string>>> =>
  Object(
    await map.page.evaluate(`Object.fromEntries([...document.querySelectorAll("[id^=shard-]")]
      .filter((cell) => cell.matches(".cell"))
      .map((cell) => [cell.id, cell.parentElement.ariaLabel.replace("The shards of ", "")]))`)
  )

const countShown = async (node: string): Promise<number> =>
  Object.values(await ownersShown()).filter((owner) => owner === node).length

/** Waits until the open time line has a text. */
const eventShown = (text: RegExp): Promise<void> =>
  line.page.locator("#history-events").getByText(text).first().waitFor()

beforeAll(async () => {
  nats = await startServer()
  browser = await launchBrowser()
  one = await startNode("one")
})

afterAll(async () => {
  await browser?.close()
  cleanUp()
  await nats?.close()
})

it("shows a node that joins, and its shards move into its frame", async () => {
  map = await openMarked("/cluster")
  await map.page.emulateMedia({ reducedMotion: "no-preference" })
  line = await openMarked("/cluster/history")
  await expect.poll(() => countShown("one"), { timeout: withinMs }).toBe(256)
  // It begins: the next change of the page may come before it ends.
  await map.page.evaluate(`document.addEventListener("transitionrun", (event) => {
    if (event.propertyName === "translate") document.body.dataset.moved = event.target.id
  })`)
  const two = startNode("two")
  await frameOf("two").waitFor()
  await map.page.locator("body[data-moved^=shard-]").waitFor()
  const node = await two
  await expect.poll(() => countShown("two"), { timeout: withinMs }).toBeGreaterThan(80)
  const owners = await ownersShown()
  expect(Object.keys(owners)).toHaveLength(256)
  expect(new Set(Object.values(owners))).toEqual(new Set(["one", "two"]))
  await eventShown(/^node two joined$/)
  await eventShown(/^node two took \d+ shards? of node one$/)
  await map.inspect("cluster-two-nodes")
  expect([await isMarked(map), await isMarked(line)]).toEqual(["open", "open"])
  expect(node.isOver).toBe(false)
  // What it owned goes back when it is killed.
  await node.kill()
  await expect.poll(() => countShown("one"), { timeout: withinMs }).toBe(256)
  await frameOf("two").waitFor({ state: "detached" })
  await eventShown(/^node two did not answer, and is no longer a member$/)
  await eventShown(/^node one took \d+ shards?( of node two)?$/)
  expect([await isMarked(map), await isMarked(line)]).toEqual(["open", "open"])
})

it("shows that NATS was lost, and that it is back", async () => {
  for (const tab of [map, line]) tab.expects(503)
  const before = one.output.length
  await nats.stop()
  await expect.poll(() => one.output.slice(before), { timeout: withinMs })
    .toMatch(/the connection to NATS at \S+ was lost/)
  await eventShown(/^node one lost its connection to NATS$/)
  await nats.restart()
  await eventShown(/^node one is connected to NATS again$/)
  await map.page.getByText("This page changes by itself.").waitFor()
  await expect.poll(() => countShown("one"), { timeout: withinMs }).toBe(256)
  expect([await isMarked(map), await isMarked(line)]).toEqual(["open", "open"])
  await map.close()
  await line.close()
})
