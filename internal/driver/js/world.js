// What the driver calls.
globalThis.reins = {
  walk, walkAs, walkWith, mark: markNow, hosts, adopt, settleHosts, numberOf, ready, through, reveal, disarm, waitedInVain, focusOn, caretAtEnd, after, standing, rectOf, control, selectAll,
  holding, offered, pick, takesNumber, choose, chosen, pressOption, awaitChecked, optionsOf, sliderNow, filesOf, fileReady, elementOf,
  read, untilText, untilState, unwait, shows, scroll, placed, bar, caretForSecret, strayed, takesSecret, wipe,
  laidOut, spotOf, putClip, takeClip, expectClip, clipTaken,
};
