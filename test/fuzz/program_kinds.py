"""Which grammar a program is of: the plain one, the one with the wider forms, sequences, pairs of models."""

import random

from program_grammar import Grammar
from program_losses import Losses
from program_meters import Meters
from program_pairs import Pairs
from program_places import Places
from program_schedules import Schedules
from program_sequences import Sequences


class Wider(Places, Meters, Schedules, Losses, Grammar):
    pass


class OfSequences(Sequences, Wider):
    pass


class OfPairs(Pairs, Wider):
    pass


def generate(seed, number):
    rng = random.Random(f"{seed}/{number}")
    kind = rng.choices([Grammar, Wider, OfSequences, OfPairs], [5, 7, 4, 4])[0]
    return kind(rng, number).case()
