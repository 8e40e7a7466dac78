/**
 * Hostile deposits in real browsers. A stranger leaves scripts in everything that the service
 * stores; the victim's browser, which has the credentials of an admin, loads every representation
 * of every resource: as a document, and as a part of pages of other origins. No script may run.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cleanUp, eventually } from "../e2e/process.ts"
import { foreignParts } from "./browsers/audit.ts"
import { startChromium } from "./browsers/chromium.ts"
import { destinationsOf } from "./browsers/embedding.ts"
import { startFirefox } from "./browsers/firefox.ts"
import { formsOf, problemsOf, type Representation,
  resourcesOf } from "./browsers/representations.ts"
import { type Scene, setScene } from "./browsers/scene.ts"
import type { BrowserTab, Sighting, TestBrowser } from "./browsers/tab.ts"

/** Tabs that load documents beside each other. */
const tabs = 3
/** URIs that one page of another origin loads. */
const urisOnPage = 16
const shownWithinMs = 60_000

let scene: Scene

beforeAll(async () => {
  scene = await setScene()
})
afterAll(() => {
  scene?.close()
  cleanUp()
})

/** Runs `work` on each item, in several tabs. */
const inTabs = async <A>(
  opened: ReadonlyArray<BrowserTab>,
  items: ReadonlyArray<A>,
  work: (tab: BrowserTab, item: A) => Promise<void>
): Promise<void> => {
  const rest = [...items]
  await Promise.all(opened.map(async (tab) => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(tab, item)
  }))
}

/** What a page has that is not the service's own. */
const partsOf = async (tab: BrowserTab): Promise<ReadonlyArray<string>> =>
  // The expression ends with an array of texts.
  await tab.evaluate(foreignParts) as ReadonlyArray<string>

describe.each([["chromium", startChromium], ["firefox", startFirefox]] as const)(
  "%s",
  (_, startBrowser) => {
    let browser: TestBrowser
    let opened: ReadonlyArray<BrowserTab>
    beforeAll(async () => {
      browser = await startBrowser()
      opened = await Promise.all(Array.from({ length: tabs }, () => browser.openTab()))
    })
    afterAll(() => browser?.close())

    const firstTab = (): BrowserTab => {
      const [tab] = opened
      if (tab === undefined) throw new Error("the browser has no tab")
      return tab
    }

    /**
     * Whether the policy refused what Firefox itself wanted to prefetch: the next page, which the
     * service named in the Link field of that document. Deposits write no Link field. A prefetch
     * begins once the tab is idle, perhaps when the next document is being loaded.
     */
    const isOwnPrefetch = ({ kind, text }: Sighting): boolean => {
      const [directive, blocked, document = ""] = text.split(" ")
      if (kind !== "violation" || directive !== "default-src" || blocked === undefined) return false
      return scene.front.answersTo(document).some(({ next }) =>
        next !== undefined && new URL(next, document).href === blocked
      )
    }

    /** Loads a representation as a document; returns what is wrong with it. */
    const faultsOf = async (
      tab: BrowserTab,
      one: Representation
    ): Promise<ReadonlyArray<string>> => {
      const uri = scene.front.uriOf(one)
      await tab.visit(uri)
      const [answer] = scene.front.answersTo(uri)
      if (answer === undefined) return ["was not loaded"]
      const faults = tab.sightings()
        .filter((seen) => !isOwnPrefetch(seen))
        .map(({ kind, text }) => `${kind} ${text}`)
      if (one.type !== undefined && !answer.type.startsWith(one.type)) faults.push(answer.type)
      if (!one.isOwn || !answer.type.startsWith("text/html")) return faults
      return [...faults, ...await partsOf(tab)]
    }

    it("runs no script of a deposit in any representation of any resource", async () => {
      const { document, marks, shown } = scene
      const all = [
        ...resourcesOf(document, shown),
        ...problemsOf(document, marks),
        ...formsOf(document, shown, marks)
      ]
      const found: Array<string> = []
      await inTabs(opened, all, async (tab, one) => {
        const faults = await faultsOf(tab, one)
        if (faults.length > 0) found.push(`${one.label} ${one.path}: ${faults.join(", ")}`)
      })
      // An assertion would show the beginning of the list only.
      if (found.length > 0) throw new Error(found.join("\n"))
      expect(await scene.actsIn(firstTab())).toEqual([])
    })

    it.each(["foreign", "sibling"] as const)("runs none for a page of a %s host", async (from) => {
      const { document, front, pages, shown } = scene
      const uris = resourcesOf(document, shown, true).map((one) => front.uriOf(one))
      const groups = Array.from(
        { length: Math.ceil(uris.length / urisOnPage) },
        (__, at) => uris.slice(at * urisOnPage, (at + 1) * urisOnPage)
      )
      const ran: Array<string> = []
      await inTabs(opened, groups, async (tab, group) => {
        await tab.visit(pages.pageOf(from, group))
        ran.push(...tab.sightings().map(({ kind, text }) => `${kind} ${text}`))
      })
      // A page may make a script of its own of what anybody published; it has no other rights.
      const harmless = new RegExp(`^ran \\d+ as ${pages.originOf(from)} in `)
      expect(ran.filter((one) => !harmless.test(one))).toEqual([])
      const acted = new Set(await scene.actsIn(firstTab()))
      for (const type of ["text/css", "text/javascript"]) acted.delete(`content of ${type}`)
      expect([...acted]).toEqual([])
      // Browsers leave out some: Chromium a plug-in whose path ends as that of none.
      const loaded = uris.map((uri) => front.answersTo(uri).map(({ destination }) => destination))
      expect(loaded.filter((one) => one.length === 0)).toEqual([])
      for (const destination of destinationsOf(from)) {
        const count = loaded.filter((one) => one.includes(destination)).length
        expect([destination, count > uris.length / 2]).toEqual([destination, true])
      }
    })

    it.each(["foreign", "sibling"] as const)("changes nothing for a %s host", async (from) => {
      const { front, pages } = scene
      const tab = firstTab()
      front.changesTaken()
      await tab.visit(pages.changingPage(from, front.origin))
      const changes: Array<string> = []
      await eventually(shownWithinMs, "all changes are sent", () => {
        changes.push(...front.changesTaken())
        return changes.length === 5 ? true : undefined
      })
      expect(changes.toSorted()).toEqual([
        "/accounts/admin/token: 403",
        "/accounts/admin/token: 403",
        "/mailboxes: 403",
        "/mailboxes: 403",
        "/mailboxes: 403"
      ])
      await eventually(
        shownWithinMs,
        "the page could not read",
        async () => await tab.evaluate("document.title") === "rejected" ? true : undefined
      )
    })

    it.each(["foreign", "sibling"] as const)("retrieves nothing for a %s host", async (from) => {
      const { depositor, front, pages } = scene
      const embedded = await depositor.fleeting()
      const [, read] = await depositor.fleeting()
      const uris = embedded.map((path) =>
        front.uriOf({ label: "embedded", method: "GET", path, headers: {} })
      )
      await firstTab().visit(pages.pageOf(from, uris))
      for (const uri of uris) {
        expect(front.answersTo(uri).map(({ status }) => status)).toContain(200)
      }
      // What its owner reads is removed; what a page has retrieved would be removed before it.
      expect(await depositor.statusOf(read)).toBe(200)
      await eventually(
        shownWithinMs,
        "what was read is removed",
        async () => await depositor.statusOf(read) === 410 ? true : undefined
      )
      expect(await depositor.statusOf(embedded[1])).toBe(200)
    })

    it("runs none of a deposit that arrives while the page is open", async () => {
      const { depositor, front } = scene
      const tab = firstTab()
      await tab.show()
      await tab.visit(`${front.origin}/mailboxes/hostile?limit=1000`)
      await eventually(
        shownWithinMs,
        "the page listens",
        async () =>
          await tab.evaluate(`document.body.innerText.includes("This page changes by itself.")`) ===
              true
            ? true
            : undefined
      )
      const entries = `document.querySelectorAll(".entries > li").length`
      const before = Number(await tab.evaluate(entries))
      await depositor.another()
      await eventually(
        shownWithinMs,
        "the page shows it",
        async () => Number(await tab.evaluate(entries)) > before ? true : undefined
      )
      expect(await partsOf(tab)).toEqual([])
      expect(tab.sightings()).toEqual([])
      expect(await scene.actsIn(tab)).toEqual([])
    })

    it("runs them in documents of a service that protects nobody", async () => {
      const { pages, unprotected } = scene
      const tab = firstTab()
      const ran: Array<string> = []
      for (const uri of unprotected.uris) {
        await tab.visit(uri)
        ran.push(...tab.sightings().map(({ kind }) => kind))
      }
      // As a page, in a listing, and as an image: the observer sees each of them.
      expect(ran.length).toBeGreaterThanOrEqual(3)
      await tab.visit(pages.pageOf("sibling", unprotected.uris))
      await eventually(shownWithinMs, "they run in frames", () => {
        ran.push(...tab.sightings().map(({ kind }) => kind))
        // Three kinds of documents in two kinds of frames, and the script.
        return ran.length >= 10 ? true : undefined
      })
      expect(new Set(ran)).toEqual(new Set(["ran"]))
    })
  }
)
