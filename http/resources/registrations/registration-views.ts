/** The documents and pages of push registrations; the pages work without a script. */
import type { RegistrationAttempt, RegistrationStatus, RegistrationView,
  TestEventStatus } from "../../../actors/registration/index.ts"
import { addressLink, type Control, copyField, deleteForm, emptyState, type FormRank, type Html,
  html, type HtmlForm, link, livePart, liveScriptPath, liveState, methodControl, nothing,
  type PageLink, renderForm, secretsOnce, shortUri, statusBadge, type StatusBadges, timeAt,
  versionControl } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, optionalElement,
  printable } from "../../formats/xml/index.ts"
import { uriCharsMax } from "../../limits.ts"
import type { MailboxRef } from "../mailboxes/index.ts"
import { shortAttempts } from "./attempt-views.ts"
import { attemptsHref, collectionHref, collectionPath, type DescribedRegistration,
  type RegistrationRef } from "./registration-access.ts"
import { signatureForm } from "./signature-views.ts"

/* The pages. */

const badges: StatusBadges<RegistrationStatus> = {
  active: ["good", "✓ active"],
  unverified: ["wait", "○ unverified"],
  suspended: ["bad", "✗ suspended"],
  paused: ["wait", "‖ paused"]
}

/** The meaning of each status for a person. */
const meanings: { readonly [S in RegistrationStatus]: string } = {
  active: "Changes are pushed to the callback.",
  unverified: "The callback has not answered the challenge yet; nothing is pushed to it.",
  suspended: "The callback has failed for too long; nothing is pushed until this is lifted.",
  paused: "A reader of the mailbox has paused it. Resumed, pushes go on from where they stopped."
}

/** What the status means for a person. */
const meaningOf = ({ endpointRejects, status }: RegistrationView): string =>
  status === "suspended" && endpointRejects === true
    ? "The push service has refused a push; nothing is pushed until this is lifted."
    : meanings[status]

const callbackControl = (value: string | undefined): Control => ({
  name: "callback",
  label: "Callback",
  type: "url",
  required: true,
  maxlength: uriCharsMax,
  ...value === undefined ? {} : { value },
  hint: "The URI that changes are pushed to. It must answer a challenge first."
})

/** The topic of a WebSub subscription. */
const topicOf = (
  { href }: MailboxRef,
  { form, topicFormat }: RegistrationView
): string | undefined => {
  if (form !== "websub") return undefined
  return topicFormat === undefined ? href : `${href}?format=${topicFormat}`
}

const entry = (mailbox: MailboxRef, { registration, view }: DescribedRegistration): Html =>
  html`<li><p>${
    statusBadge(badges, view.status)
  } <a href="${registration.path}" title="${view.callback}">${shortUri(view.callback)}</a></p>
<p class="quiet">${[view.form, topicOf(mailbox, view) ?? []].flat().join(" · ")}${
    view.attempts === 0 ? nothing : html` · attempts ${view.attempts}`
  }${view.problem === undefined ? nothing : html` · ${view.problem}`}</p></li>
`

/** The form that registers (A12). */
export const registerForm = (action: string, callback?: string): HtmlForm => ({
  id: "register",
  action,
  legend: "Register a callback",
  controls: [callbackControl(callback)],
  submit: "Register"
})

const collectionPage = (
  mailbox: MailboxRef,
  all: ReadonlyArray<DescribedRegistration>
): Html =>
  html`<p>The service pushes every change of the mailbox to each of these callbacks.</p>
${
    livePart(
      "entries",
      all.length > 0
        ? html`<ul class="entries">${all.map((one) => entry(mailbox, one))}</ul>`
        : emptyState(
          "There is nothing here.",
          "Register the URI of a program that receives pushes."
        )
    )
  }${liveState}${renderForm(registerForm(collectionPath(mailbox)))}`

const row = (label: string, value: Html | string | number | undefined): Html =>
  value === undefined ? nothing : html`<dt>${label}</dt><dd>${value}</dd>
`

const timeRow = (label: string, atMs: number | undefined): Html =>
  atMs === undefined ? nothing : row(label, timeAt(atMs))

const formTexts: { readonly [F in RegistrationView["form"]]: string } = {
  native: "native: signed by Standard Webhooks",
  websub: "WebSub",
  webpush: "Web Push: encrypted for a browser"
}

const facts = (mailbox: MailboxRef, view: RegistrationView): Html =>
  html`<p>${statusBadge(badges, view.status)} <span class="quiet">${meaningOf(view)}</span></p>
<dl class="facts">${row("Callback", addressLink(view.callback))}${
    row("Form", formTexts[view.form])
  }${row("Topic", topicOf(mailbox, view))}${row("Account", view.account)}${
    timeRow("Created", view.createdAtMs)
  }${timeRow("Lease until", view.leaseUntilMs)}${row("Acknowledged up to", view.cursor)}${
    row("Attempts", view.attempts)
  }${timeRow("Last attempt", view.lastAtMs)}${timeRow("Next attempt", view.nextAtMs)}${
    row("Status code", view.code)
  }${row("Problem", view.problem)}${
    timeRow("The old secret also signs until", view.rotatedUntilMs)
  }${testFacts(view)}</dl>
`

const testTexts: { readonly [S in TestEventStatus]: string } = {
  pending: "○ no answer yet",
  delivered: "✓ delivered",
  failed: "✗ failed",
  unknown: "? unknown: the node ended before the answer; send it again"
}

/** The last test event for a person. */
const testFacts = ({ test }: RegistrationView): Html => {
  if (test === undefined) return nothing
  const { code, durationMs, problem, startedAtMs, status } = test
  const parts = [
    ...code === undefined || problem?.includes(String(code)) === true ? [] : [`answered ${code}`],
    ...problem === undefined ? [] : [problem],
    ...durationMs === undefined ? [] : [`${durationMs} ms`]
  ]
  return row(
    "Last test",
    html`${testTexts[status]} · ${timeAt(startedAtMs)}${parts.map((part) => ` · ${part}`)}`
  )
}

const testForm = (
  { path }: RegistrationRef,
  { endpointRejects, status }: RegistrationView
): Html =>
  status === "unverified" || endpointRejects === true ? nothing : renderForm({
    id: "test",
    action: `${path}/test`,
    legend: "Send a test: one push without a new change, also while pushes are suspended or paused",
    controls: [],
    submit: "Send a test"
  }, "secondary")

/** Pushes at once what waits for its next attempt, as the update of an active registration does. */
const pushNowForm = (
  { path }: RegistrationRef,
  { nextAtMs, status }: RegistrationView
): Html =>
  status !== "active" || nextAtMs === undefined ? nothing : renderForm({
    id: "now",
    action: path,
    legend: "A push has failed and waits for its next attempt",
    controls: [methodControl("put")],
    submit: "Push now"
  })

/** Whether pushes are to begin is what the page is about, unless they are under way. */
const liftRank = ({ status }: RegistrationView): FormRank =>
  status === "unverified" || status === "suspended" ? "primary" : "secondary"

/** The form that begins pushes to a callback, which it may change. */
export const liftForm = (path: string, view?: RegistrationView): HtmlForm => ({
  id: "lift",
  action: path,
  legend: "Verify it again, lift a suspension, or change the callback",
  controls: [
    methodControl("put"),
    versionControl(view?.version),
    callbackControl(view?.callback)
  ],
  submit: "Verify"
})

const nativeForms = ({ path }: RegistrationRef, view: RegistrationView): Html =>
  html`${renderForm(liftForm(path, view), liftRank(view))}${
    renderForm({
      id: "rotate",
      action: `${path}/secret`,
      legend: "A new secret; the old one also signs for a while",
      controls: [],
      submit: "Make a new secret"
    }, "secondary")
  }`

const subscriptionForms = ({ path }: RegistrationRef, view: RegistrationView): Html =>
  view.status === "paused" ? nothing : renderForm({
    id: "lift",
    action: path,
    ...view.form === "websub"
      ? { legend: "Verify it again, or lift a suspension", submit: "Verify" }
      : { legend: "Lift a suspension", submit: "Lift" },
    controls: [methodControl("put")]
  }, liftRank(view))

/** Pauses the registration, or resumes it. */
const pauseForm = ({ path }: RegistrationRef, { status }: RegistrationView): Html => {
  switch (status) {
    case "unverified":
      return nothing
    case "paused":
      return renderForm({
        id: "resume",
        action: path,
        legend: "Resume: pushes go on from where they stopped",
        controls: [methodControl("put")],
        submit: "Resume"
      })
    default:
      return renderForm({
        id: "pause",
        action: path,
        legend: "Pause the pushes, which then go on from here when you resume them",
        controls: [
          methodControl("put"),
          { name: "status", label: "", type: "hidden", value: "paused" }
        ],
        submit: "Pause"
      }, "secondary")
  }
}

const replayForm = ({ path }: RegistrationRef, { status }: RegistrationView): Html =>
  status !== "active" ? nothing : renderForm({
    id: "replay",
    action: path,
    legend: "Push again what came in a span of time",
    controls: [
      methodControl("put"),
      {
        name: "since",
        label: "Since",
        required: true,
        hint: "A time such as 2026-01-01T00:00:00Z. A later one than the last push leaves out some."
      },
      {
        name: "until",
        label: "Until",
        hint:
          "What came after this time is not repeated, and new changes follow. Empty: to the end."
      }
    ],
    submit: "Push again"
  }, "rare")

const registrationPage = (
  mailbox: MailboxRef,
  registration: RegistrationRef,
  view: RegistrationView,
  attempts: ReadonlyArray<RegistrationAttempt>
): Html =>
  html`${livePart("facts", facts(mailbox, view))}${
    livePart("last-attempts", shortAttempts(registration, attempts))
  }${liveState}${
    livePart(
      "pause-form",
      html`${pushNowForm(registration, view)}${testForm(registration, view)}${
        pauseForm(registration, view)
      }`
    )
  }${
    view.form === "native"
      ? nativeForms(registration, view)
      : subscriptionForms(registration, view)
  }${replayForm(registration, view)}${signatureForm(registration, view)}${
    deleteForm(registration.path, "End it: the service pushes nothing after that", "End")
  }`

const secretPage = (
  { path }: RegistrationRef,
  { callback, rotatedUntilMs }: RegistrationView,
  secret: string
): Html =>
  html`${
    secretsOnce([[
      "Secret, which signs every push (Standard Webhooks)",
      copyField("secret", secret)
    ]])
  }<dl><dt>Callback</dt><dd>${callback}</dd>${
    timeRow("The old secret also signs until", rotatedUntilMs)
  }</dl>
<p>${link(path, "Status of the registration")}</p>`

/* The documents. */

const testElement = ({ test }: RegistrationView): Element | undefined =>
  test === undefined ? undefined : element("test", {
    status: test.status,
    started: isoTime(test.startedAtMs),
    code: test.code,
    milliseconds: test.durationMs,
    problem: test.problem === undefined ? undefined : printable(test.problem)
  })

const problemElement = ({ problem }: RegistrationView): Element | undefined =>
  optionalElement("problem", problem === undefined ? undefined : printable(problem))

/** The registration document; `secret` only in the answer that shows it. */
export const registrationElement = (
  mailbox: MailboxRef,
  { href }: RegistrationRef,
  view: RegistrationView,
  secret?: string
): Element =>
  element(
    "registration",
    { href, status: view.status, form: view.form, created: isoTime(view.createdAtMs) },
    element("callback", {}, view.callback),
    optionalElement("topic", topicOf(mailbox, view)),
    optionalElement("secret", secret),
    optionalElement("account", view.account),
    element("cursor", {}, view.cursor),
    optionalElement("lease-until", isoTime(view.leaseUntilMs)),
    element("attempts", {}, view.attempts),
    optionalElement("last", isoTime(view.lastAtMs)),
    optionalElement("next", isoTime(view.nextAtMs)),
    optionalElement("code", view.code),
    problemElement(view),
    optionalElement("rotated-until", isoTime(view.rotatedUntilMs)),
    testElement(view)
  )

const linksOf = (mailbox: MailboxRef): ReadonlyArray<PageLink> => [
  { rel: "mailbox", href: mailbox.href },
  { rel: "collection", href: collectionHref(mailbox), title: "All registrations" },
  { rel: "up", href: mailbox.here, title: "The mailbox" }
]

/** One registration, with its last attempts. */
export const registrationView = (
  mailbox: MailboxRef,
  registration: RegistrationRef,
  view: RegistrationView,
  attempts: ReadonlyArray<RegistrationAttempt> = []
): ResourceView => ({
  title: "A push registration",
  tree: () => registrationElement(mailbox, registration, view),
  body: () => registrationPage(mailbox, registration, view, attempts),
  links: [
    ...linksOf(mailbox),
    { rel: "related", href: attemptsHref(registration), title: "All attempts" }
  ],
  scripts: [liveScriptPath]
})

/** One registration with its new secret, which no other answer shows. */
export const secretView = (
  mailbox: MailboxRef,
  registration: RegistrationRef,
  view: RegistrationView,
  secret: string
): ResourceView => ({
  title: "The secret of the registration",
  tree: () => registrationElement(mailbox, registration, view, secret),
  body: () => secretPage(registration, view, secret),
  links: linksOf(mailbox)
})

/**
 * The registrations of a mailbox, in the order of their creation, and the public key by which a
 * browser subscribes (Push API, `applicationServerKey`).
 */
export const collectionView = (
  mailbox: MailboxRef,
  all: ReadonlyArray<DescribedRegistration>,
  applicationServerKey: string
): ResourceView => ({
  title: "Push registrations",
  tree: () =>
    element(
      "registrations",
      { href: collectionHref(mailbox), applicationServerKey },
      ...all.map(({ registration, view }) => {
        const { attempts, callback, code, cursor, form, lastAtMs, nextAtMs, status } = view
        const topic = topicOf(mailbox, view)
        const { href } = registration
        const facts = { cursor, attempts, last: isoTime(lastAtMs), next: isoTime(nextAtMs), code }
        return element(
          "registration",
          { href, status, form, callback, topic, ...facts },
          problemElement(view)
        )
      })
    ),
  body: () => collectionPage(mailbox, all),
  links: [
    { rel: "mailbox", href: mailbox.href },
    { rel: "up", href: mailbox.here, title: "The mailbox" }
  ],
  scripts: [liveScriptPath]
})
