/** The service itself, its accounts, and its cluster. */
import { typefacePath } from "../../../http/formats/html/typeface.ts"
import { childrenOf } from "../../../http/formats/xml/index.ts"
import { adminToken } from "../harness.ts"
import { admin } from "../operation-requests.ts"
import { quarantineMailbox } from "../quarantined-actor.ts"
import { eventually } from "../receiver.ts"
import { located, type OperationCalls } from "./calls.ts"

/** The service, probes and files. */
export const askService = async ({ asks, reads }: OperationCalls): Promise<void> => {
  await reads("/", "/problems", "/openapi.json", "/style.css", "/robots.txt", "/favicon.ico")
  await reads("/.well-known/security.txt")
  await reads("/livez", "/readyz")
  await asks("GET /metrics", { path: "/metrics", isElsewhere: true, isClosed: true })
  await reads("/page.js", "/live.js", "/list.js", "/charts.js", "/chips.js", "/notify.js")
  await reads("/search.js", "/service-worker.js", "/manifest.webmanifest", "/icon.png")
  await reads("/fonts/OFL.txt")
  await asks("GET /fonts/{file}", { path: typefacePath, basic: undefined })
  await asks("GET /archive", { path: "/archive" })
  await asks("GET /admin", { path: "/admin" })
  await asks("GET /limits", { path: "/limits" })
  await asks("GET /settings", { path: "/settings" })
  await asks("GET /problems/{slug}", { path: "/problems/gone", basic: undefined })
  await reads("/docs", "/docs/api")
  await asks("GET /docs/{page}", { path: "/docs/quick-start", basic: undefined })
  await asks("GET /docs/how-to/{page}", { path: "/docs/how-to/recipes", basic: undefined })
  await asks("GET /docs/modules/{page}", { path: "/docs/modules/http", basic: undefined })
  await asks("GET /docs/pictures/{file}", {
    path: "/docs/pictures/mailbox.webp",
    basic: undefined
  })
  await asks("GET /docs/reference/{page}", { path: "/docs/reference/settings", basic: undefined })
  await asks("GET /docs/api/{resource}", { path: "/docs/api/mailboxes", basic: undefined })
}

/** Accounts and tokens. */
export const askAccounts = async ({ asks, send, service }: OperationCalls): Promise<void> => {
  const account = (round: number) => ({ name: `account${round}`, role: ["quotes"] })
  const made = await asks("POST /accounts", {
    path: "/accounts",
    root: "account",
    json: account,
    form: (round) => ({ name: `account${round}`, role: "" })
  })
  const path = located(service, made)
  await asks("GET /accounts", { path: "/accounts?limit=1000" })
  await asks("GET /accounts/{account}", { path })
  // It owns no mailbox.
  await asks("PUT /accounts/{account}", { path, root: "account", json: () => ({}) })
  const form = () => ({ method: "put", "failure-reports": "" })
  await asks("POST /accounts/{account}", { path, form })
  const token = located(
    service,
    await asks("POST /accounts/{account}/token", {
      path: `${path}/token`,
      root: "token",
      json: (round) => ({ name: `for ${round}`, expires: "P30D" }),
      form: () => ({ name: "", expires: "" })
    })
  )
  await asks("GET /accounts/{account}/tokens", { path: `${path}/tokens` })
  await asks("GET /accounts/{account}/tokens/{token}", { path: token })
  await asks("DELETE /accounts/{account}/tokens/{token}", { path: token })
  const spare = located(service, [
    await send("POST", `${path}/token`, { basic: admin })
  ])
  const removal = () => ({ method: "delete" })
  await asks("POST /accounts/{account}/tokens/{token}", {
    path: spare,
    form: removal,
    isOnce: true
  })
  await asks("DELETE /accounts/{account}/tokens", { path: `${path}/tokens` })
  await asks("GET /accounts/{account}/export", { path: `${path}/export` })
  await asks("DELETE /accounts/{account}", { path })
  const body = "<account><name>leaver</name></account>"
  await send("POST", "/accounts", { basic: admin, body })
  await asks("DELETE /accounts/{account}", { path: "/accounts/leaver?owned=delete" })
}

/** The audit log, which has the operations of these tests. */
export const askAudit = async ({ asks }: OperationCalls): Promise<void> => {
  await asks("GET /audit", { path: "/audit?action=account.create&limit=2" })
  await asks("GET /audit/chain", { path: "/audit/chain?limit=2" })
}

/** Browsers that sign in and out. */
export const askSignIn = async ({ asks, send, service }: OperationCalls): Promise<void> => {
  await asks("GET /sign-in", { path: "/sign-in?return=/quotes", basic: undefined })
  const form = () => ({ account: "admin", token: adminToken, return: "/quotes" })
  await asks("POST /sign-in", { path: "/sign-in", basic: undefined, form })
  await asks("GET /sign-out", { path: "/sign-out", basic: undefined })
  const button = { path: "/sign-out", basic: undefined, form: () => ({}) }
  await asks("POST /sign-out", { ...button, besides: ["unfit"] })
  const path = "/accounts/admin/browser-sessions"
  const signedIn = async () => {
    await send("POST", "/sign-in", {
      body: new URLSearchParams(form()).toString(),
      type: "application/x-www-form-urlencoded"
    })
    const listed = await send("GET", path, { basic: admin })
    const sessions = childrenOf(listed.xml).map(({ attributes }) => attributes["href"] ?? "")
    return (sessions.at(-1) ?? "").replace(service.base, "")
  }
  const own = await signedIn()
  await asks("GET /accounts/{account}/browser-sessions", { path })
  const one = "/accounts/{account}/browser-sessions/{browserSession}"
  await asks(`GET ${one}`, { path: own })
  const deletion = () => ({ method: "delete" })
  await asks(`POST ${one}`, { path: signedIn, form: deletion, besides: ["unknown"] })
  await asks(`DELETE ${one}`, { path: signedIn })
  const all = "/accounts/{account}/browser-sessions"
  await asks(`POST ${all}`, { path, form: deletion })
  await asks(`DELETE ${all}`, { path })
}

/** Blocks and reports. */
export const askModeration = async ({ asks, send, service }: OperationCalls): Promise<void> => {
  await send("POST", "/mailboxes", { basic: admin, headers: { Slug: "moderated" } })
  const kinds = [["/blocks", "/blocks"], [
    "/mailboxes/{mailbox}/blocks",
    "/mailboxes/moderated/blocks"
  ]]
  for (const [pattern = "", path = ""] of kinds) {
    const made = await asks(`POST ${pattern}`, {
      path,
      root: "block",
      json: (round) => ({ account: `nobody${round}`, expires: "P30D" }),
      form: (round) => ({ account: `nobody${round}`, expires: "" })
    })
    const block = located(service, made)
    await asks(`GET ${pattern}`, { path })
    await asks(`GET ${pattern}/{block}`, { path: block })
    await asks(`DELETE ${pattern}/{block}`, { path: block })
    await asks(`POST ${pattern}/{block}`, {
      path: async (round) => {
        const body = `<block><account>other${round}</account></block>`
        return located(service, [await send("POST", path, { basic: admin, body })])
      },
      form: () => ({ method: "delete" })
    })
  }
  let reported = 0
  const deposit = async () => {
    const item = `<item><description>${reported++}</description><url>http://a.example/</url></item>`
    const body = `<notification>${item}</notification>`
    return located(service, [await send("POST", "/mailboxes/moderated", { body })])
  }
  const notification = "/mailboxes/{mailbox}/notifications/{notification}"
  await asks(`GET ${notification}/depositor`, { path: `${await deposit()}/depositor` })
  await asks(`POST ${notification}/report`, {
    path: `${await deposit()}/report`,
    root: "report",
    json: () => ({ reason: "spam" }),
    form: () => ({ reason: "spam" })
  })
  const report = async () => {
    const body = "<report><reason>spam</reason></report>"
    await send("POST", `${await deposit()}/report`, { basic: admin, body })
    const { text } = await send("GET", "/reports", { basic: admin })
    return new URL(/href="([^"]+)"/.exec(text)?.[1] ?? "").pathname
  }
  const path = await report()
  await asks("GET /reports", { path: "/reports" })
  await asks("GET /reports/{report}", { path })
  await asks("POST /reports/{report}", { path: report, form: () => ({ method: "delete" }) })
  await asks("DELETE /reports/{report}", { path })
}

/** The cluster, and actors that rest. */
export const askCluster = async ({ asks, send, service }: OperationCalls): Promise<void> => {
  await asks("GET /cluster", { path: "/cluster" })
  await asks("GET /cluster/history", { path: "/cluster/history" })
  await asks("GET /cluster/messages", { path: "/cluster/messages?kind=mailbox" })
  await asks("GET /cluster/actors/{kind}", { path: "/cluster/actors/account" })
  await send("GET", "/cluster/actors/account?id=admin", { basic: admin })
  await asks("GET /cluster/actors/{kind}/{id}", { path: "/cluster/actors/account/admin" })
  const resting = async (round: number) => {
    const name = `broken-${round}`
    await send("POST", "/mailboxes", { basic: admin, headers: { Slug: name } })
    await quarantineMailbox(service, name)
    return `/cluster/quarantine/mailbox/${name}`
  }
  const key = "/cluster/quarantine/{kind}/{id}"
  await asks(`POST ${key}`, { path: resting, form: () => ({}), besides: ["unfit"] })
  const path = await resting(0)
  for (const node of service.nodes) {
    await eventually("every node shows it", async () => {
      const { status } = await send("GET", node + path, { basic: admin })
      return status === 200 ? true : undefined
    })
  }
  await asks(`GET ${key}`, { path })
  await asks(`DELETE ${key}`, { path })
}
