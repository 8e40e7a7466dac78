/** The documents and pages of signing in and out, and of the browsers of an account. */
import type { BrowserSessionView } from "../../../actors/account/index.ts"
import { cardTable, deleteForm, emptyState, type FormRank, type Html, html, link, renderButton,
  renderForm, signInForm, signOutPath, timeAt } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, printable } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"

export const browserSessionsPath = (account: string): string =>
  `/accounts/${account}/browser-sessions`

export const browserSessionPath = (account: string, id: string): string =>
  `${browserSessionsPath(account)}/${id}`

const signOutForm = (account: string, rank?: FormRank): Html =>
  renderForm({
    id: "sign-out",
    action: signOutPath,
    legend: `This browser is signed in as ${account}`,
    controls: [],
    submit: "Sign out"
  }, rank)

const accountLinks = (account: string): Html =>
  html`<p>${link(`/accounts/${account}`, "Your account")} · ${
    link(browserSessionsPath(account), "The browsers that are signed in")
  }</p>`

/** The page of the form; `account` is signed in already. */
export const signInView = (account: string | undefined, returnPath: string): ResourceView => ({
  title: "Sign in",
  tree: element("sign-in", { account }),
  body: account === undefined
    ? html`<p>Sign in with the name of an account and one of its tokens. The browser then stays
signed in for twelve hours after its last visit, and for a week at most.</p>`
    : html`<p>You are signed in as <b>${account}</b>. ${link(returnPath, "Continue")}</p>
${accountLinks(account)}`,
  forms: account === undefined
    ? html`${renderForm(signInForm(returnPath))}<p class="quiet">Without an account you may deposit
notifications, cross the bridge, and query quotes and customers.</p>`
    : html`${renderForm(signInForm(returnPath, "Sign in as somebody else"))}${
      signOutForm(account, "secondary")
    }`
})

/** The page that signs out, or says that nobody is signed in. */
export const signOutView = (account: string | undefined): ResourceView => ({
  title: account === undefined ? "Signed out" : "Sign out",
  tree: element("sign-out", { account }),
  body: account === undefined
    ? html`<p>Nobody is signed in with this browser. ${link("/sign-in", "Sign in")}</p>`
    : accountLinks(account),
  forms: account === undefined ? undefined : signOutForm(account)
})

/** The browsers of an account, and the one that asks. */
export interface ShownSessions {
  readonly account: string
  readonly sessions: ReadonlyArray<BrowserSessionView>
  /** The session of the request. */
  readonly current: string | undefined
}

const sessionElement = (
  service: Service,
  { account, current }: ShownSessions,
  session: BrowserSessionView
): Element =>
  element("browser-session", {
    href: absoluteUri(service, browserSessionPath(account, session.id)),
    id: session.id,
    created: isoTime(session.createdAtMs),
    used: isoTime(session.usedAtMs),
    expires: isoTime(session.expiresAtMs),
    from: session.from,
    agent: printable(session.agent),
    token: session.tokenId,
    current: session.id === current ? "true" : undefined
  })

/** Names of browsers in their User-Agent: the first one that occurs, since each names others. */
const browserNames: ReadonlyArray<readonly [pattern: RegExp, name: string]> = [
  [/\bEdgA?\/(\d+)/, "Edge"],
  [/\bOPR\/(\d+)/, "Opera"],
  [/\bFirefox\/(\d+)/, "Firefox"],
  [/\b(?:Headless)?Chrome\/(\d+)/, "Chrome"],
  [/\bVersion\/(\d+)[^ ]* .*Safari/, "Safari"]
]

const systemNames: ReadonlyArray<readonly [pattern: RegExp, name: string]> = [
  [/Windows/, "Windows"],
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Mac OS X/, "macOS"],
  [/Linux/, "Linux"]
]

const unknownAgentCharsMax = 60

/** The browser and its system for people: `Firefox 140 on Linux`. */
const nameOf = (agent: string): string => {
  const [pattern, name] = browserNames.find(([one]) => one.test(agent)) ?? []
  const [, system] = systemNames.find(([one]) => one.test(agent)) ?? []
  if (pattern === undefined) return agent.slice(0, unknownAgentCharsMax) || "Unknown"
  const version = pattern.exec(agent)?.[1]
  return `${name} ${version}${system === undefined ? "" : ` on ${system}`}`
}

const sessionRow = (
  { account, current }: ShownSessions,
  session: BrowserSessionView
): ReadonlyArray<Html | string> => [
  html`${nameOf(session.agent)}${
    session.id === current && html` <span class="badge good">✓ this browser</span>`
  }`,
  session.from,
  timeAt(session.createdAtMs),
  timeAt(session.usedAtMs),
  renderButton(browserSessionPath(account, session.id), "Sign out", nameOf(session.agent), {
    fields: { method: "delete" },
    icon: "sign-out"
  })
]

const sessionTable = (shown: ShownSessions): Html =>
  cardTable(
    "Browsers",
    ["Browser", "From", "Signed in", "Last seen", "Sign out"],
    shown.sessions.map((session) => sessionRow(shown, session))
  )

/** The browsers that are signed in to an account. */
export const browserSessionsView = (service: Service, shown: ShownSessions): ResourceView => {
  const { account, sessions } = shown
  const href = browserSessionsPath(account)
  return {
    title: `Browsers of ${account}`,
    tree: element(
      "browser-sessions",
      { href: absoluteUri(service, href) },
      ...sessions.map((session) => sessionElement(service, shown, session))
    ),
    body: () =>
      sessions.length === 0
        ? emptyState("No browser is signed in.", link("/sign-in", "Sign in"))
        : sessionTable(shown),
    forms: () =>
      sessions.length === 0
        ? html``
        : deleteForm(href, "All browsers of the account, also this one", "Sign out everywhere"),
    links: [{ rel: "up", href: `/accounts/${account}`, title: "The account" }]
  }
}

/** One of the browsers. */
export const browserSessionView = (
  service: Service,
  shown: ShownSessions,
  session: BrowserSessionView
): ResourceView => ({
  title: `A browser of ${shown.account}`,
  tree: sessionElement(service, shown, session),
  body: () => sessionTable({ ...shown, sessions: [session] }),
  links: [{
    rel: "up",
    href: browserSessionsPath(shown.account),
    title: "All browsers of the account"
  }]
})
