/**
 * The last attempts to push to a callback, to verify it and to test it: the document, the page, and
 * their short form on the page of the registration.
 */
import type { AttemptFollowUp, RegistrationAttempt } from "../../../actors/registration/index.ts"
import { type Html, html, nothing } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { element } from "../../formats/xml/index.ts"
import { attemptElement, attemptList, attemptSummary,
  type AttemptTexts } from "../attempts/index.ts"
import type { MailboxRef } from "../mailboxes/index.ts"
import { attemptsHref, attemptsPath, type RegistrationRef } from "./registration-access.ts"

/** Attempts on the page of the registration. */
export const shortAttemptsMax = 5

/** What follows an attempt, for a person. */
const followUpTexts: { readonly [F in AttemptFollowUp]: string } = {
  done: "",
  schedule: "by the retry schedule",
  "retry-after": "the receiver has asked for it (Retry-After)",
  none: "none: a test is not repeated",
  suspended: "none: the registration is suspended",
  "given-up": "none, until it is verified again"
}

const texts: AttemptTexts<RegistrationAttempt> = {
  label: ({ kind }) => html`${kind}`,
  followUps: new Map(Object.entries(followUpTexts))
}

/** The last attempts in short, for the page of the registration. */
export const shortAttempts = (
  registration: RegistrationRef,
  attempts: ReadonlyArray<RegistrationAttempt>
): Html =>
  attempts.length === 0 ? nothing : html`<h2>Last attempts</h2>
<ul class="entries">${
    attempts.map((attempt) =>
      html`<li>${attemptSummary(attempt, texts)}</li>
`
    )
  }</ul>
<p><a href="${attemptsPath(registration)}">What was sent, and what was answered</a></p>
`

/** The last attempts of a registration, the newest first. */
export const attemptsView = (
  mailbox: MailboxRef,
  registration: RegistrationRef,
  attempts: ReadonlyArray<RegistrationAttempt>
): ResourceView => ({
  title: "Attempts of a push registration",
  tree: () =>
    element(
      "attempts",
      { href: attemptsHref(registration) },
      ...attempts.map((attempt) => attemptElement(attempt, { kind: attempt.kind }))
    ),
  body: () =>
    html`<p>What the service sent last to the callback, and what it answered; the newest first.</p>
${attemptList(attempts, texts)}`,
  links: [
    { rel: "mailbox", href: mailbox.href },
    { rel: "up", href: registration.href, title: "The registration" }
  ]
})
