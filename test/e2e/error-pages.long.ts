/**
 * The pages of refusals, as a browser gets them: forbidden, removed, against a rule, too often,
 * and of an actor in quarantine. axe finds nothing on them, at three widths in both color schemes.
 * `page-measures.long.ts` has those of 400, 401 and 404.
 */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { wrongTokensMax } from "../../actors/limits.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, startService } from "../http/harness.ts"
import { quarantineMailbox } from "../http/quarantined-actor.ts"
import { everyLookFaultsOf } from "./browser/axe.ts"
import { launchBrowser, openTab, type Tab } from "./browser/browser.ts"

const basic = `admin:${adminToken}`
const guest = "guest-of-error-pages"

let service: Harness
let browser: Browser
let guestToken: string

const create = async (name: string): Promise<void> => {
  const body = `<mailbox><name>${name}</name></mailbox>`
  expect((await service.send("POST", "/mailboxes", { basic, body })).status).toBe(201)
}

beforeAll(async () => {
  service = await startService(resourceTable)
  browser = await launchBrowser()
  const body = `<account><name>${guest}</name></account>`
  guestToken = (await service.send("POST", "/accounts", { basic, body })).child("token") ?? ""
  await create("removed")
  expect((await service.send("DELETE", "/mailboxes/removed", { basic })).status).toBe(204)
  await create("broken")
  await quarantineMailbox(service, "broken")
})

afterAll(async () => {
  await browser?.close()
  await service?.close()
})

/** Signs in by the form, which is where guesses are refused. */
const enterToken = async ({ page }: Tab, token: string): Promise<void> => {
  await page.goto(`${service.base}/sign-in`)
  await page.getByLabel("Account").fill(guest)
  await page.getByLabel("Token").fill(token)
  await page.getByRole("main").getByRole("button", { name: "Sign in" }).click()
}

/** Ways to the pages; each comes back with its status. */
const visits: Readonly<Record<number, (tab: Tab) => Promise<void>>> = {
  403: async ({ page }) => void await page.goto(`${service.base}/cluster`),
  410: async ({ page }) => void await page.goto(`${service.base}/mailboxes/removed`),
  422: async ({ page }) => {
    await page.goto(`${service.base}/mailboxes`)
    await page.getByLabel("Kept after retrieval for").fill("soon")
    await page.getByRole("button", { name: "Open", exact: true }).click()
  },
  503: async ({ page }) => void await page.goto(`${service.base}/mailboxes/broken`),
  // The last one: afterwards the address of this machine is a guesser's.
  429: async (tab) => {
    for (let n = 0; n < wrongTokensMax; n += 1) {
      await service.send("GET", "/mailboxes", { basic: `${guest}:guess-${tab.page.url()}-${n}` })
    }
    await enterToken(tab, "one-more")
  }
}

it("pages of refusals are accessible", async () => {
  const tab = await openTab(browser)
  await enterToken(tab, guestToken)
  const faults: Array<string> = []
  for (const status of [403, 410, 422, 503, 429]) {
    tab.expects(status)
    const answered = tab.page.waitForResponse((response) =>
      response.status() === status && response.request().isNavigationRequest()
    )
    await visits[status]?.(tab)
    await answered
    const found = await everyLookFaultsOf(tab, (look) => tab.inspect(`errors-${status}-${look}`))
    faults.push(...found.map((fault) => `${status}: ${fault}`))
  }
  expect(faults).toEqual([])
  await tab.close()
})
