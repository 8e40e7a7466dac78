/** The sample pages of those who run the service, and of what accounts keep. */
import { type Answer, asAdmin, expectStatus, linkOf, postXml, send } from "../client.ts"
import { adminToken } from "../process.ts"
import { pathOf, type SamplePage, samplePage } from "./sample-page.ts"

const made = (answer: Answer): string =>
  pathOf(expectStatus(answer, 201, 202).headers.get("location"))

/** The first link below a path on the page of that path. */
const firstBelow = async (base: string, path: string): Promise<string> => {
  const { text } = await send(base, path, { headers: { ...asAdmin, accept: "text/html" } })
  const [found] = new RegExp(`${path}/[^"/?]+`).exec(text) ?? []
  if (found === undefined) throw new Error(`${path} has no member`)
  return found
}

/** Blocks, a report, and who has deposited the notification. */
const moderation = async (
  base: string,
  notification: string
): Promise<ReadonlyArray<SamplePage>> => {
  const block = "<block><host>nobody.example</host><reason>advertisements</reason></block>"
  const blocks = "/mailboxes/alice/blocks"
  const ofService = made(await postXml(base, "/blocks", block, asAdmin))
  const ofMailbox = made(await postXml(base, blocks, block, asAdmin))
  const report = "<report><reason>It is an advertisement.</reason></report>"
  const sent = await postXml(base, `${notification}/report`, report, asAdmin)
  expectStatus(sent, 200, 201, 202, 204)
  return [
    samplePage("blocks", "/blocks"),
    samplePage("block", ofService),
    samplePage("mailbox-blocks", blocks),
    samplePage("mailbox-block", ofMailbox),
    samplePage("depositor", `${notification}/depositor`),
    samplePage("reports", "/reports"),
    samplePage("report", await firstBelow(base, "/reports"))
  ]
}

/** A content with a receipt. */
const contents = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const published = await send(base, "/content", {
    method: "POST",
    headers: { ...asAdmin, "content-type": "text/plain" },
    body: "The plan of the garden, in words."
  })
  const location = pathOf(expectStatus(published, 201, 202).headers.get("location"))
  const edit = pathOf(linkOf(published, "edit"))
  const receipt = "<receipt status=\"received\"><description>Thanks.</description></receipt>"
  expectStatus(await postXml(base, location, receipt), 200, 201, 202, 204)
  return [
    samplePage("content", "/content"),
    samplePage("receipts", `${edit}/receipts`),
    samplePage("receipt", `${edit}/receipts/1`)
  ]
}

/** Tokens and signed-in browsers of the admin. */
const credentials = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const tokens = "/accounts/carla/tokens"
  const browsers = "/accounts/admin/browser-sessions"
  const form = new URLSearchParams({ account: "admin", token: adminToken })
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    "sec-fetch-site": "same-origin",
    "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
  }
  const signedIn = await send(base, "/sign-in", { method: "POST", headers, body: form.toString() })
  expectStatus(signedIn, 303)
  return [
    samplePage("tokens", tokens),
    samplePage("token", await firstBelow(base, tokens)),
    samplePage("browsers", browsers),
    samplePage("browser", await firstBelow(base, browsers)),
    samplePage("signed-in", "/sign-in"),
    samplePage("sign-out", "/sign-out"),
    samplePage("sign-in", "/sign-in?return=/quotes", { isStranger: true }),
    samplePage("signed-out", "/sign-out", { isStranger: true }),
    samplePage("sign-in-needed", "/mailboxes", { isStranger: true, status: 401 })
  ]
}

/** The pages of administrators; `notification` is one in the mailbox alice. */
export const administrationPages = async (
  base: string,
  notification: string
): Promise<ReadonlyArray<SamplePage>> => [
  ...await moderation(base, notification),
  ...await contents(base),
  ...await credentials(base),
  samplePage("audit", "/audit"),
  samplePage("audit-chain", "/audit/chain"),
  samplePage("administration", "/admin"),
  samplePage("cluster", "/cluster"),
  samplePage("history", "/cluster/history"),
  samplePage("messages", "/cluster/messages"),
  samplePage("actors", "/cluster/actors/mailbox"),
  samplePage("actor", "/cluster/actors/mailbox/alice"),
  samplePage("quarantine", "/cluster/quarantine/mailbox/alice", { status: 404 }),
  samplePage("limits", "/limits"),
  samplePage("settings", "/settings")
]
