/** The documentation, the colors of the pages, and the ways back from errors. */
import { expect } from "vitest"
import type { Walk } from "./walk.ts"

const searchName = "Search the documentation"

const search = async (walk: Walk): Promise<void> => {
  await walk.fill(searchName, "fencing token")
  if (walk.isScripted) {
    await walk.tab.page.locator("#found a").first().waitFor()
    await walk.step("found-while-typing")
  }
  await walk.keys.enter()
  await walk.step("search", "Search")
  await walk.keys.skip()
  await walk.keys.to("Search")
  await walk.keys.press("Tab")
  const name = await walk.keys.focusedName()
  await walk.keys.enter()
  await walk.step("found")
  expect(name).not.toBe("")
  await walk.keys.skip()
}

export const docsFlow = async (walk: Walk): Promise<void> => {
  await walk.begin("/")
  await walk.header("Docs")
  await walk.step("first")
  await walk.enter("Concepts")
  await walk.step("concepts", "Concepts")
  await walk.press("On this page")
  await walk.step("headings")
  await walk.press("The life of an actor")
  await walk.tab.page.waitForURL(/#/)
  await walk.step("heading")
  await walk.begin("/docs/concepts")
  await walk.enter("Previous: Quick start")
  await walk.step("previous", "Quick start")
  await search(walk)
  await walk.enter("API reference")
  await walk.step("api", "API reference")
  await walk.enter("cabinets")
  await walk.step("api-cabinets", "API reference: cabinets")
  await walk.press(/^GET \/cabinets:?/)
  await walk.step("operation")
}

const schemeOf = ({ tab }: Walk): Promise<unknown> =>
  tab.page.evaluate("getComputedStyle(document.documentElement).colorScheme")

/** A script adds a button; without one the colors are those that the system asks for. */
export const themeFlow = async (walk: Walk): Promise<void> => {
  const other = walk.look.theme === "dark" ? "Light" : "Dark"
  const own = walk.look.theme === "dark" ? "Dark" : "Light"
  await walk.begin("/quotes")
  expect(await schemeOf(walk)).toBe("light dark")
  if (!walk.isScripted) {
    expect(await walk.tab.page.getByRole("button", { name: /colors$/ }).count()).toBe(0)
    return walk.step("of-the-system")
  }
  await (await walk.keys.back(`${other} colors`)).press("Enter")
  expect(await schemeOf(walk)).toBe(other.toLowerCase())
  expect(await walk.keys.focusedName()).toBe(`${own} colors`)
  await walk.step("other")
  await walk.keys.skip()
  await walk.header("Customers")
  expect(await schemeOf(walk)).toBe(other.toLowerCase())
  await walk.step("other-page")
  await (await walk.keys.back(`${own} colors`)).press("Space")
  expect(await schemeOf(walk)).toBe(own.toLowerCase())
}

export const errorFlow = async (walk: Walk): Promise<void> => {
  walk.tab.expects(404).expects(400)
  await walk.begin("/nothing/here")
  await walk.step("not-found")
  await walk.enter("the start page")
  await walk.step("home", "Poste restante")
  await walk.begin("/nothing/here")
  await walk.fill(searchName, "mailbox")
  await walk.enter("Search")
  expect(new URL(walk.tab.page.url()).pathname).toBe("/docs")
  await walk.step("searched", "Search")
  await walk.begin("/customers?agemin=old")
  await walk.step("malformed")
  await walk.enter("malformed")
  await walk.step("problem-type")
  await walk.header("restante")
  expect(await walk.tab.heading()).toBe("Poste restante")
}
