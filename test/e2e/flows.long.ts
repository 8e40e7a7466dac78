/**
 * Every flow of the pages by keyboard alone, at three widths, light and dark, with a script and
 * without. axe finds nothing on their steps. Screenshots of each are kept in `test-results/flows`.
 */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { launchBrowser } from "./browser/browser.ts"
import { createSamplePages } from "./browser/sample-pages.ts"
import { takeTour } from "./browser/tour.ts"
import { asAdmin, basic, childOf, expectStatus, parseXml, postXml } from "./client.ts"
import { outgoingFlow, registrationFlow } from "./flows/delivery-flows.ts"
import { docsFlow, errorFlow, themeFlow } from "./flows/documentation-flows.ts"
import { cabinetFlow, contentFlow, mailboxFlow, notifyFlow,
  webhookFlow } from "./flows/mailbox-flows.ts"
import { filesFlow, filterFlow } from "./flows/message-flows.ts"
import { accountFlow, administrationFlow, clusterFlow,
  signInFlow } from "./flows/operation-flows.ts"
import { bridgeFlow, queryFlow, tableFlow } from "./flows/row-flows.ts"
import { type Actor, type BrowserState, flowLooks, type Look, lookName,
  Walk } from "./flows/walk.ts"
import { cleanUp, type Service, start } from "./process.ts"
import { closeReceivers, echoes, receiver } from "./receivers.ts"

/** For all flows of one look. */
const lookHangsMs = 3_600_000

let service: Service
let browser: Browser
let base: string

const tourFlow = async (walk: Walk): Promise<void> => {
  const origin = await receiver((received, response) => {
    if (!echoes(received, response)) response.writeHead(204).end()
  })
  await takeTour(walk.tab, base, walk.named("toured"), {
    callback: `${origin}/hook`,
    isLive: walk.isScripted,
    onStep: (name) => walk.step(name)
  })
}

interface Flow {
  readonly take: (walk: Walk) => Promise<void>
  /** It begins without a session. */
  readonly isSignedOut?: boolean
}

const flows: Readonly<Record<string, Flow>> = {
  "sign-in": { take: signInFlow, isSignedOut: true },
  tour: { take: tourFlow },
  mailbox: { take: mailboxFlow },
  filter: { take: filterFlow },
  files: { take: filesFlow },
  webhooks: { take: webhookFlow },
  notify: { take: notifyFlow },
  cabinet: { take: cabinetFlow },
  content: { take: contentFlow },
  outgoing: { take: outgoingFlow },
  registration: { take: registrationFlow },
  bridge: { take: bridgeFlow },
  query: { take: queryFlow },
  tables: { take: tableFlow },
  account: { take: accountFlow },
  administration: { take: administrationFlow },
  cluster: { take: clusterFlow },
  docs: { take: docsFlow },
  theme: { take: themeFlow },
  error: { take: errorFlow }
}

beforeAll(async () => {
  const launching = launchBrowser()
  const retries = Array.from({ length: 30 }, () => "4s").join(",")
  const env = { BASE_URL: "", OUTBOUND_ALLOW: "127.0.0.0/8", RETRY_SCHEDULE: `0s,${retries}` }
  service = await start({ env })
  base = `http://localhost:${service.port}`
  await createSamplePages(base)
  browser = await launching
})

afterAll(async () => {
  await browser?.close()
  closeReceivers()
  cleanUp()
})

const roles = ["admin", "quotes", "customers"]

const createActor = async (account: string): Promise<Actor> => {
  const document = `<account><name>${account}</name>${
    roles.map((role) => `<role>${role}</role>`).join("")
  }</account>`
  const { text } = expectStatus(await postXml(base, "/accounts", document, asAdmin), 201)
  const token = childOf(parseXml(text), "token").text
  return { account, token, authorization: basic(account, token) }
}

const openWalk = (look: Look, flow: string, actor: Actor, state?: BrowserState): Promise<Walk> =>
  Walk.open(browser, { base, look, flow, actor }, state)

/** Signs in by the form, for all flows of a look. */
const signedInState = async (look: Look, actor: Actor): Promise<BrowserState> => {
  const walk = await openWalk(look, "state", actor)
  await walk.signIn()
  const state = await walk.tab.page.context().storageState()
  await walk.tab.close()
  return state
}

/** Takes a flow; returns its faults. */
const faultOf = async (
  name: string,
  { isSignedOut = false, take }: Flow,
  look: Look,
  [actor, guest, state]: readonly [Actor, Actor, BrowserState]
): Promise<ReadonlyArray<string>> => {
  const walk = isSignedOut
    ? await openWalk(look, name, guest)
    : await openWalk(look, name, actor, state)
  try {
    await take(walk)
    await walk.tab.close()
    return walk.faults
  } catch (error) {
    await walk.tab.save(`flows/${lookName(look)}/${name}-failed`)
    const url = walk.tab.page.url()
    await walk.tab.page.context().close()
    return [
      ...walk.faults,
      `${name} at ${url}: ${error instanceof Error ? error.stack : String(error)}`
    ]
  }
}

it.concurrent.each(flowLooks.map((look) => [lookName(look), look] as const))(
  "every flow is taken by keyboard alone (%s)",
  async (name, look) => {
    const actor = await createActor(`user-${name}`)
    const guest = await createActor(`guest-${name}`)
    const state = await signedInState(look, actor)
    const faults: Array<string> = []
    for (const [flow, one] of Object.entries(flows)) {
      faults.push(...await faultOf(flow, one, look, [actor, guest, state]))
    }
    expect(faults, faults.join("\n")).toEqual([])
  },
  lookHangsMs
)
