"""A pass at measured rates: which measured call stands for each piece of a layer."""
