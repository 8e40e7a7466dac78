/** The documents and pages of accounts. Only the answer that creates a token shows it. */
import { type AccountView, Role, TokenScope,
  type TokenView } from "../../../actors/account/index.ts"
import { scopeWords } from "../../auth/credentials/index.ts"
import { cardTable, type Control, type Html, html, type HtmlForm, link, methodControl,
  type PageLink, renderForm, secretsOnce, share, sizeText, timeAt,
  versionControl } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, optionalElement } from "../../formats/xml/index.ts"
import { slugCharsMax, tokenLabelCharsMax } from "../../limits.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"

export const collectionPath = "/accounts"

export const accountPath = (name: string): string => `${collectionPath}/${name}`

export const tokensPath = (name: string): string => `${accountPath(name)}/tokens`

export const tokenPath = (name: string, id: string): string => `${tokensPath(name)}/${id}`

export const roles: ReadonlyArray<Role> = Role.literals

/** In place of a mailbox: a new account gets no failure reports. */
export const noReports = "none"

/** The scope of a token as one text; undefined for a token with all rights of its account. */
const scopeOf = (token: TokenView): string | undefined => scopeWords(token).join(" ") || undefined

const tokenElement = (service: Service, name: string, token: TokenView, secret?: string): Element =>
  element(
    "token",
    {
      href: absoluteUri(service, tokenPath(name, token.id)),
      id: token.id,
      name: token.label,
      created: isoTime(token.createdAtMs),
      expires: isoTime(token.expiresAtMs),
      scope: scopeOf(token),
      used: isoTime(token.usedAtMs)
    },
    secret
  )

/** Without the last use of its tokens: reading the account with one does not change it. */
export const accountElement = (
  service: Service,
  account: AccountView,
  created?: { readonly tokenId: string; readonly token: string }
): Element =>
  element(
    "account",
    {
      href: absoluteUri(service, accountPath(account.name)),
      created: isoTime(account.createdAtMs)
    },
    element("name", {}, account.name),
    optionalElement("failure-reports", account.failureReports),
    ...account.roles.map((role) => element("role", {}, role)),
    ...account.tokens.map(({ usedAtMs: _usedAtMs, ...token }) =>
      tokenElement(
        service,
        account.name,
        token,
        created?.tokenId === token.id ? created.token : undefined
      )
    )
  )

const tokenOnce = (token: string): Html =>
  secretsOnce([["The token", html`<div data-copy="token"><pre>${token}</pre></div>`]])

const collectionLink: PageLink = { rel: "collection", href: collectionPath, title: "All accounts" }

const scopeLabels: Readonly<Record<TokenScope, string>> = {
  admin: "Manages mailboxes, tokens and what else the account owns, and uses its roles (admin)",
  send: "Sends, publishes and deposits (send)",
  read: "Reads mailboxes and what was sent (read)",
  deposit: "Deposits in mailboxes, and publishes for them (deposit)"
}

/** The form that creates another token. */
export const tokenForm = (name: string): HtmlForm => ({
  action: `${accountPath(name)}/token`,
  legend: "Another token",
  controls: [
    {
      name: "name",
      label: "Name",
      maxlength: tokenLabelCharsMax,
      hint: "The purpose of the token; optional."
    },
    {
      name: "expires",
      label: "Expires",
      type: "select",
      value: "P90D",
      options: [
        ["P1D", "in a day"],
        ["P7D", "in 7 days"],
        ["P30D", "in 30 days"],
        ["P90D", "in 90 days"],
        ["P365D", "in a year"],
        ["", "never, or with the token that you use"]
      ]
    },
    ...TokenScope.literals.map((scope): Control => ({
      name: "scope",
      label: scopeLabels[scope],
      type: "checkbox",
      option: scope
    })),
    {
      name: "mailbox",
      label: "Only for the mailbox",
      maxlength: slugCharsMax,
      hint: "The name of a mailbox; optional. Without it and without a choice above, the token " +
        "has all rights of the account."
    }
  ],
  submit: "Create a token"
})

/** The form that chooses the mailbox for the failure reports of an account. */
export const reportsForm = (name: string, account?: AccountView): HtmlForm => ({
  id: "failure-reports",
  action: accountPath(name),
  legend: "Failure reports",
  controls: [
    methodControl("put"),
    versionControl(account?.version),
    {
      name: "failure-reports",
      label: "Mailbox",
      maxlength: slugCharsMax,
      value: account?.failureReports ?? "",
      hint: "A mailbox of this account. It gets a report when pushes are suspended, or when a " +
        "notification could not be delivered. Empty: no reports."
    }
  ],
  submit: "Change"
})

const tokenTable = (name: string, tokens: ReadonlyArray<TokenView>): Html =>
  cardTable(
    "Tokens",
    ["Token", "Scope", "Created", "Expires", "Last used"],
    tokens.map((token) => {
      const { createdAtMs, expiresAtMs, id, label, usedAtMs } = token
      return [
        link(tokenPath(name, id), label ?? id),
        scopeOf(token) ?? "all",
        timeAt(createdAtMs),
        expiresAtMs === undefined ? "never" : timeAt(expiresAtMs),
        usedAtMs === undefined ? "never" : timeAt(usedAtMs)
      ]
    })
  )

const rolesOf = ({ roles: names }: AccountView): string =>
  names.length === 0 ? "none" : names.join(", ")

/** Where the failure reports of an account go. */
const reportsText = ({ failureReports, reportsUndecided }: AccountView): Html => {
  if (failureReports !== undefined) {
    return html`to ${link(`/mailboxes/${failureReports}`, failureReports)}`
  }
  return html`${
    reportsUndecided === true
      ? "to a mailbox of their own, which the first report opens."
      : "to no mailbox: only the pages show what has failed for good."
  }`
}

const accountPage = (
  account: AccountView,
  used: { readonly bytes: number; readonly bytesMax: number }
): Html =>
  html`<dl class="facts"><dt>Roles</dt><dd>${rolesOf(account)}</dd>
<dt>Created</dt><dd>${timeAt(account.createdAtMs)}</dd>
<dt>Failure reports</dt><dd>${reportsText(account)}${
    account.failureReports === undefined && html`
${link("#failure-reports-failure-reports", "Choose a mailbox")}`
  }</dd>
<dt>Content</dt><dd>${
    link(
      `/content?owner=${account.name}`,
      `${sizeText(used.bytes)} of ${sizeText(used.bytesMax)}`
    )
  }, ${share("Share of the quota", used.bytes, used.bytesMax)}</dd></dl>
<h2>Tokens</h2>
${tokenTable(account.name, account.tokens)}`

const listingPage = (accounts: ReadonlyArray<AccountView>): Html =>
  cardTable(
    "Accounts",
    ["Account", "Roles", "Created"],
    accounts.map((account) => [
      link(accountPath(account.name), account.name),
      rolesOf(account),
      timeAt(account.createdAtMs)
    ])
  )

/** The form that removes an account, for the role admin. */
export const accountRemovalForm = (name: string): HtmlForm => ({
  id: "removal",
  action: accountPath(name),
  legend: "Remove this account",
  controls: [
    methodControl("delete"),
    {
      name: "owned",
      label: "Also delete everything that it owns",
      type: "checkbox",
      option: "delete",
      hint: "Without this choice, an account that owns something is not removed."
    }
  ],
  submit: "Remove the account",
  tone: "danger"
})

/**
 * An account; `usedBytes` are those of its content. Its document has none of them, since what it
 * publishes does not change the account: `/content` and `/limits` have them.
 */
export const accountView = (
  service: Service,
  account: AccountView,
  { isAdmin, usedBytes }: { readonly isAdmin: boolean; readonly usedBytes: number }
): ResourceView => ({
  title: `Account ${account.name}`,
  tree: accountElement(service, account),
  body: () =>
    accountPage(account, { bytes: usedBytes, bytesMax: service.usage.limits.accountBytesMax }),
  forms: html`${renderForm(tokenForm(account.name))}${
    renderForm(reportsForm(account.name, account), "secondary")
  }${isAdmin && renderForm(accountRemovalForm(account.name), "rare")}`,
  links: [
    collectionLink,
    { rel: "related", href: tokensPath(account.name), title: "Its tokens" },
    {
      rel: "related",
      href: `${accountPath(account.name)}/browser-sessions`,
      title: "Its browsers"
    }
  ]
})

/** The tokens of an account, without their secrets. */
export const tokensView = (
  service: Service,
  name: string,
  tokens: ReadonlyArray<TokenView>
): ResourceView => ({
  title: `Tokens of ${name}`,
  tree: element(
    "tokens",
    { href: absoluteUri(service, tokensPath(name)) },
    ...tokens.map((token) => tokenElement(service, name, token))
  ),
  body: () => tokenTable(name, tokens),
  forms: renderForm(tokenForm(name)),
  links: [{ rel: "up", href: accountPath(name), title: "The account" }]
})

/** A new account with its token. */
export const createdView = (
  service: Service,
  account: AccountView,
  tokenId: string,
  token: string
): ResourceView => ({
  title: `Account ${account.name}`,
  tree: accountElement(service, account, { tokenId, token }),
  body: html`${tokenOnce(token)}<p>Failure reports: ${reportsText(account)}</p>
`,
  links: [collectionLink, { rel: "self", href: accountPath(account.name), title: "The account" }]
})

const tokenRemovalForm = (path: string): HtmlForm => ({
  id: "removal",
  action: path,
  legend: "Revoke this token: it is invalid at once",
  controls: [methodControl("delete")],
  submit: "Revoke",
  tone: "danger"
})

/** One token of an account, with its secret when it is new. */
export const tokenView = (
  service: Service,
  name: string,
  token: TokenView,
  secret?: string
): ResourceView => ({
  title: `Token of ${name}`,
  tree: tokenElement(service, name, token, secret),
  body: secret === undefined ? undefined : tokenOnce(secret),
  forms: renderForm(tokenRemovalForm(tokenPath(name, token.id)), "rare"),
  links: [{ rel: "up", href: accountPath(name), title: "The account" }]
})

/** The form that creates an account. */
export const accountForm: HtmlForm = {
  action: collectionPath,
  legend: "A new account",
  controls: [
    {
      name: "name",
      label: "Name",
      required: true,
      maxlength: slugCharsMax,
      pattern: "[a-z0-9][a-z0-9\\-]*",
      hint: "Lower-case letters, digits and hyphens; no hyphen at the start."
    },
    {
      name: "role",
      label: "Role",
      type: "select",
      value: "",
      options: [["", "none"], ...roles.map((role): [string, string] => [role, role])]
    },
    {
      name: "failure-reports",
      label: "Open no mailbox for its failure reports",
      type: "checkbox",
      option: noReports,
      hint: "By default a mailbox of its own gets a report when something could not be delivered."
    }
  ],
  submit: "Create"
}

/** A page of the accounts. */
export const listingView = (
  service: Service,
  accounts: ReadonlyArray<AccountView>,
  next: ReadonlyArray<PageLink>
): ResourceView => ({
  title: "Accounts",
  tree: element(
    "accounts",
    {},
    ...accounts.map((account) => accountElement(service, { ...account, tokens: [] }))
  ),
  body: () => listingPage(accounts),
  forms: renderForm(accountForm),
  links: next
})
