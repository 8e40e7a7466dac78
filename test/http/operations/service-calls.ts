/** The service itself, its accounts, and its cluster. */
import { admin } from "../operation-requests.ts"
import { quarantineMailbox } from "../quarantined-mailbox.ts"
import { eventually } from "../receiver.ts"
import { located, type OperationCalls } from "./calls.ts"

/** The service, probes and files. */
export const askService = async ({ asks, reads }: OperationCalls): Promise<void> => {
  await reads("/", "/problems", "/openapi.json", "/style.css", "/robots.txt", "/favicon.ico")
  await reads("/.well-known/security.txt")
  await reads("/livez", "/readyz")
  await asks("GET /metrics", { path: "/metrics", isElsewhere: true, isClosed: true })
  await reads("/page.js", "/live.js")
  await asks("GET /archive", { path: "/archive" })
  await asks("GET /problems/{slug}", { path: "/problems/gone", basic: undefined })
}

/** Accounts and tokens. */
export const askAccounts = async ({ asks, service }: OperationCalls): Promise<void> => {
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
  await asks("DELETE /accounts/{account}/tokens", { path: `${path}/tokens` })
  await asks("DELETE /accounts/{account}", { path })
}

/** The audit log, which has the operations of these tests. */
export const askAudit = async ({ asks }: OperationCalls): Promise<void> => {
  await asks("GET /audit", { path: "/audit?action=account.create&limit=2" })
  await asks("GET /audit/chain", { path: "/audit/chain?limit=2" })
}

/** The cluster, and actors that rest. */
export const askCluster = async ({ asks, send, service }: OperationCalls): Promise<void> => {
  await asks("GET /cluster", { path: "/cluster" })
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
