/** The script of the Bridge of Death (protocol §2): data, read by script.ts. */
import type { Script } from "./script.ts"

/** The answers of the bridge, in order; the states of a session are named after them. */
export const steps = ["name", "quest", "hard_question"] as const

export type BridgeStep = (typeof steps)[number]

const anything = [{ _tag: "Anything" }] as const

export const bridge: Script<BridgeStep> = {
  entry: "Stop! Who would cross the Bridge of Death must answer me these questions three, " +
    "ere the other side he see.",
  questions: [
    { step: "name", variants: [{ ask: "What is your name?", accepts: anything }] },
    { step: "quest", variants: [{ ask: "What is your quest?", accepts: anything }] },
    {
      step: "hard_question",
      variants: [
        {
          when: { step: "name", contains: ["Robin"] },
          ask: "What is the capital of Assyria?",
          accepts: [{
            _tag: "OneOf",
            alternatives: [
              "Assur",
              "Ashur",
              "Aššur",
              "Nineveh",
              "Calah",
              "Kalhu",
              "Nimrud",
              "Dur-Sharrukin",
              "Dur Šarrukin"
            ]
          }]
        },
        {
          when: { step: "name", contains: ["Lancelot", "Galahad"] },
          ask: "What is your favourite colour?",
          accepts: [{
            _tag: "OneChoice",
            among: [
              ..."amber azure beige black blue bronze brown crimson cyan gold gray green grey"
                .split(" "),
              ..."indigo ivory khaki lavender lilac lime magenta maroon mauve navy olive orange"
                .split(" "),
              ..."pink puce purple red rose scarlet silver tan teal turquoise vermilion violet"
                .split(" "),
              "white",
              "yellow"
            ],
            retractions: ["no", "not", "wait", "rather", "actually", "instead", "never"]
          }]
        },
        {
          ask: "What is the air-speed velocity of an unladen swallow?",
          accepts: [
            {
              _tag: "AsksBack",
              whether: [["African", "Africa"], ["European", "Europe"]],
              signs: ["or", "whether", "which"]
            },
            {
              // 24 miles an hour or 11 m/s, and a fifth of it either way.
              _tag: "Quantity",
              units: [
                {
                  names: ["mph", "mi/h", "miles per hour", "miles an hour"],
                  least: 19.2,
                  most: 28.8
                },
                {
                  names: ["m/s", "metres per second", "meters per second"],
                  least: 8.8,
                  most: 13.2
                },
                {
                  names: ["km/h", "kmh", "kph", "kilometres per hour", "kilometers per hour"],
                  least: 31.7,
                  most: 47.5
                }
              ]
            }
          ]
        }
      ]
    }
  ],
  crossed: "Right. Off you go.",
  cast: "Wrong! Into the gorge with you! Aaaaaaargh!",
  confused: "Make up your mind, traveller: nobody crosses who does not mean to go on."
}
